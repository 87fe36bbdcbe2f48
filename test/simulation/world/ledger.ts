/**
 * A scheduler's face to the simulated store. Documents, checkpoints: written only over a lower (incarnation,
 * sequence), as the real one does. It can be slow and down, fail before or after it has written, and write half a batch.
 */
import {
  CacheEntries,
  decodeRun,
  encodeRun,
  type Checkpoint,
  type EncodedRun,
  type HookSubscription,
  type NewCacheEntry,
  type NewHookDelivery,
  type PullRequestName,
  type RunCounter,
  type RunDocument,
  type RunsLedger,
  type ScheduleDocument,
  type Tombstone,
} from '@penstock/store';
import { ANNOUNCEMENT_TYPES, type RunView } from '@penstock/run';
import type { Network } from './network.ts';
import { SimDocuments } from './sim-documents.ts';
import type { SimNode } from './sim-node.ts';
import type { SimStore } from './store.ts';

/** Documents sent in one write. */
const BATCH = 3;

export class SimLedger implements RunsLedger {
  readonly #network: Network;
  readonly #node: SimNode;
  readonly #caches: CacheEntries;

  constructor(network: Network, node: SimNode) {
    this.#caches = new CacheEntries(new SimDocuments(network, node));
    this.#network = network;
    this.#node = node;
  }

  async saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }> {
    const stale: string[] = [];
    for (let from = 0; from < documents.length; from += BATCH) {
      const batch = documents
        .slice(from, from + BATCH)
        .map((document) => ('story' in document ? document : encodeRun(document)));
      stale.push(
        ...(await this.#ask((store) => batch.filter((document) => !this.#write(store, document)).map(({ id }) => id))),
      );
    }
    return { stale };
  }

  checkpoint(partition: number): Promise<Checkpoint | null> {
    return this.#ask((store) => store.checkpoints.get(partition) ?? null);
  }

  saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'> {
    return this.#ask((store) => {
      const known = store.checkpoints.get(checkpoint.partition);
      if (known !== undefined && !isLower(known, checkpoint)) return 'stale';
      store.checkpoints.set(checkpoint.partition, checkpoint);
      this.#network.world.witness.checkpointed(checkpoint);
      return 'saved';
    });
  }

  openOf(partition: number): AsyncIterable<RunDocument> {
    return this.#iterate((document) => document.partition === partition && document.open);
  }

  laterThan(
    partition: number,
    position: { readonly incarnation: number; readonly sequence: number },
  ): AsyncIterable<RunDocument> {
    return this.#iterate((document) => document.partition === partition && isLower(position, document));
  }

  getAsOwner(id: string): Promise<RunDocument | null> {
    this.#network.world.mark('run read by its owner');
    return this.#ask((store) => {
      const document = store.documents.get(id);
      if (document === undefined) return null;
      const run = decodeRun(document);
      return this.#network.world.mutation === 'parents-without-outputs' ? withoutOutputs(run) : run;
    });
  }

  exists(ids: readonly string[]): Promise<Set<string>> {
    this.#network.world.mark('create asks the store');
    if (this.#network.world.mutation === 'ticks-not-looked-up') return Promise.resolve(new Set());
    const forgets = this.#network.world.mutation === 'forgets-the-deleted';
    return this.#ask(
      (store) => new Set(ids.filter((id) => store.documents.has(id) || (!forgets && store.tombstones.has(id)))),
    );
  }

  standingOf(id: string): ReturnType<RunsLedger['standingOf']> {
    return this.#ask((store) => {
      const document = store.documents.get(id);
      return document === undefined ? null : { tenant: document.tenant, parent: document.parent, open: document.open };
    });
  }

  async saveTombstones(tombstones: readonly Tombstone[]): Promise<void> {
    for (let from = 0; from < tombstones.length; from += BATCH)
      await this.#ask((store) => {
        for (const tombstone of tombstones.slice(from, from + BATCH)) this.#bury(store, tombstone);
        return true;
      });
  }

  /** In the place of the document: over a lower position only. */
  #bury(store: SimStore, tombstone: Tombstone): void {
    const known = store.tombstones.get(tombstone.id) ?? store.documents.get(tombstone.id);
    if (known !== undefined && !isLower(known, tombstone)) return;
    store.documents.delete(tombstone.id);
    store.tombstones.set(tombstone.id, tombstone);
  }

  deletedAmong(ids: readonly string[]): Promise<Set<string>> {
    return this.#ask((store) => new Set(ids.filter((id) => store.tombstones.has(id))));
  }

  async saveSchedules(documents: readonly ScheduleDocument[]): Promise<void> {
    for (let from = 0; from < documents.length; from += BATCH) {
      const batch = documents.slice(from, from + BATCH).map((document) => structuredClone(document));
      await this.#ask((store) => {
        for (const document of batch) {
          const known = store.schedules.get(document.state.id);
          if (known === undefined || isLower(known, document)) store.schedules.set(document.state.id, document);
        }
        return true;
      });
    }
  }

  async *schedulesOf(partition: number): AsyncIterable<ScheduleDocument> {
    const all = await this.#ask((store) =>
      [...store.schedules.values()].filter((each) => each.partition === partition),
    );
    yield* all;
  }

  newestSchedule(partition: number): ReturnType<RunsLedger['newestSchedule']> {
    return this.#ask((store) => {
      const all = [...store.schedules.values()].filter((each) => each.partition === partition);
      return all.toSorted((a, b) => (isLower(a, b) ? 1 : -1))[0] ?? null;
    });
  }

  async addCaches(entries: readonly NewCacheEntry[]): Promise<void> {
    const { mutation } = this.#network.world;
    await this.#caches.add(mutation === 'caches-without-trust' ? entries.map(asTrusted) : entries);
  }

  hooksOf(tenants: readonly string[]): Promise<readonly HookSubscription[]> {
    return this.#ask(() =>
      tenants.map((tenant) => ({ id: `of ${tenant}`, tenant, events: ANNOUNCEMENT_TYPES, repository: '' })),
    );
  }

  async addHookDeliveries(deliveries: readonly NewHookDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += BATCH)
      await this.#ask((store) => {
        for (const delivery of deliveries.slice(from, from + BATCH)) {
          const id = `${delivery.run} ${delivery.version}`;
          if (store.hookDeliveries.has(id)) this.#network.world.mark('hook told again');
          else store.hookDeliveries.set(id, delivery);
        }
        return true;
      });
  }

  hookBacklog(): ReturnType<RunsLedger['hookBacklog']> {
    return this.#ask(() => ({ deliveries: 0, bytes: 0 }));
  }

  headOf({ key, ref }: PullRequestName): ReturnType<RunsLedger['headOf']> {
    const { world } = this.#network;
    world.mark('create asks the store for a head');
    if (world.mutation === 'forgets-stored-heads') return Promise.resolve(null);
    return this.#ask((store) => {
      const heads = [...store.documents.values()].flatMap((document) => {
        const { commit, pullRequest } = JSON.parse(document.view) as RunView;
        return document.key !== key || document.ref !== ref || pullRequest?.sequence === undefined
          ? []
          : [{ sequence: pullRequest.sequence, commit: commit ?? '' }];
      });
      return heads.toSorted((a, b) => b.sequence - a.sequence)[0] ?? null;
    });
  }

  async saveCounters(counters: readonly RunCounter[]): Promise<void> {
    for (let from = 0; from < counters.length; from += BATCH) {
      await this.#ask((store) => {
        for (const counter of counters.slice(from, from + BATCH)) {
          const id = `${counter.key} ${counter.month}`;
          const known = store.counters.get(id);
          if (known === undefined || isLower(known, counter)) store.counters.set(id, counter);
        }
        return true;
      });
    }
  }

  counter(key: string, month: string): Promise<RunCounter | null> {
    return this.#ask((store) => store.counters.get(`${key} ${month}`) ?? null);
  }

  async *countersOf(partition: number, month: string): AsyncIterable<RunCounter> {
    yield* await this.#ask((store) =>
      [...store.counters.values()].filter((counter) => counter.partition === partition && counter.month === month),
    );
  }

  #write(store: SimStore, document: EncodedRun): boolean {
    const known = store.tombstones.get(document.id) ?? store.documents.get(document.id);
    if (known !== undefined && !isLower(known, document)) return false;
    // Also where the log has lost its end: what the store had as ended was seen, and its stages were executed.
    const wasClosed = store.documents.get(document.id)?.open === false;
    this.#network.world.check(!wasClosed || !document.open, 'P6', `run ${document.id} was closed, and is open again`);
    store.tombstones.delete(document.id);
    store.documents.set(document.id, document);
    this.#network.world.witness.documented(document);
    return true;
  }

  /** In pages, so that a late projector can write between them. */
  async *#iterate(matches: (document: EncodedRun) => boolean): AsyncIterable<RunDocument> {
    let after = '';
    for (;;) {
      const from = after;
      const page = await this.#ask((store) =>
        [...store.documents.values()]
          .filter((document) => document.id > from && matches(document))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
          .slice(0, BATCH),
      );
      for (const document of page) yield decodeRun(document);
      if (page.length < BATCH) return;
      after = page.at(-1)?.id ?? '';
    }
  }

  #ask<T>(work: (store: SimStore) => T): Promise<T> {
    return this.#network.world.promise((resolve, reject) => this.#network.askStore(this.#node, work, resolve, reject));
  }
}

/** Where runs that are trusted look. */
function asTrusted(entry: NewCacheEntry): NewCacheEntry {
  return { ...entry, scope: { ...entry.scope, ref: entry.scope.ref.replace('/untrusted', '') } };
}

function withoutOutputs(run: RunDocument): RunDocument {
  const events = run.events.map((event) => {
    if (event.type === 'stages_adopted')
      return { ...event, adopted: event.adopted.map(({ outputs: _outputs, ...stage }) => stage) };
    if (event.type !== 'stage_completed') return event;
    const { outputs: _outputs, ...rest } = event;
    return rest;
  });
  return { ...run, events };
}

function isLower(
  a: { readonly incarnation: number; readonly sequence: number },
  b: { readonly incarnation: number; readonly sequence: number },
): boolean {
  return a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.sequence < b.sequence);
}

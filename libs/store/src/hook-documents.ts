/**
 * Outgoing webhooks: who wants to hear what, and the outbox (P35). Hooks are written and read by who serves people; deliveries
 * are inserted by the projector of a partition, before the documents and the checkpoint that stand for the same events, and
 * changed by whoever sends them.
 *
 *  HOOKS-1 A delivery is named by hook, run and version: of several inserts one stands.
 *  HOOKS-3 Of one hook and run nobody sees a delivery before those of lower versions that are added with it.
 *  HOOKS-2 What changes about a hook stands apart from it: a write that comes late brings back no hook that was deleted.
 */
import type { AnnouncementType } from '@penstock/run';
import { BATCH_DOCUMENTS_MAX } from './checks.ts';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore } from './port.ts';

export const hooksSpec = {
  name: 'hooks',
  fields: {
    tenant: 'string',
    url: 'string',
    /** `AnnouncementType`s, joined by commas. */
    events: 'string',
    /** `<provider>/<path>` as it was given; '' for all runs of the tenant. */
    repository: 'string',
    createdAt: 'integer',
  },
  /** The key that deliveries are signed with, sealed. */
  parts: ['secret'],
  indexes: [['tenant']],
} as const satisfies CollectionSpec;

/** The id is the hook's. */
export const hookStatesSpec = {
  name: 'hook_states',
  fields: {
    /** Of the first of the failures since the last success; 0: there is none. */
    failingSince: 'integer',
    failures: 'integer',
    /** 0: it is on. */
    switchedOffAt: 'integer',
    /** Why the last failure was one; '' after a success. */
    why: 'string',
    /** Who sends for it now; '': nobody. */
    holder: 'string',
    revision: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: [],
  indexes: [],
  version: ['revision', 'step'],
} as const satisfies CollectionSpec;

/** The id is made of hook, run and version (`hookDeliveryId`), so that ids in their order are those of a hook's runs, and of a run's events. */
export const hookDeliveriesSpec = {
  name: 'hook_deliveries',
  fields: {
    hook: 'string',
    run: 'string',
    runVersion: 'integer',
    event: 'string',
    /** It is still to be sent. */
    open: 'boolean',
    /** Of one that is not open: whether the receiver has taken it. */
    taken: 'boolean',
    /** Somebody has asked for it again. */
    asked: 'boolean',
    createdAt: 'integer',
    /** When it may be sent again; 0: at once, whatever the clocks say. Milliseconds since 1970, as the others. */
    dueAt: 'integer',
    attempts: 'integer',
    /** 0: never. */
    triedAt: 'integer',
    /** Of the last answer; 0: there was none. */
    status: 'integer',
    answerMs: 'integer',
    why: 'string',
    /** 0 while it is open. */
    endedAt: 'integer',
    /** Of the body. */
    bytes: 'integer',
    revision: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: ['body'],
  indexes: [['open', 'hook'], ['hook'], ['hook', 'open', 'endedAt'], ['open', 'endedAt'], ['open', 'taken', 'endedAt']],
  version: ['revision', 'step'],
} as const satisfies CollectionSpec;

export const hookCollections: readonly CollectionSpec[] = [hooksSpec, hookStatesSpec, hookDeliveriesSpec];

/** What a projector needs to know of a hook. */
export interface HookSubscription {
  readonly id: string;
  readonly tenant: string;
  readonly events: readonly AnnouncementType[];
  /** `<provider>/<path>`; '' for all runs of the tenant. */
  readonly repository: string;
}

export interface NewHookDelivery {
  readonly hook: string;
  readonly run: string;
  readonly version: number;
  readonly event: AnnouncementType;
  /** JSON, as it is sent. */
  readonly body: string;
  readonly createdAt: number;
}

/** How much waits for a hook, as far as it was counted. */
export interface HookBacklog {
  readonly deliveries: number;
  readonly bytes: number;
}

export interface HookOutboxLedger {
  /** Those of these tenants that are on. Any number. */
  hooksOf(tenants: readonly string[]): Promise<readonly HookSubscription[]>;
  /** HOOKS-1, HOOKS-3. Any number; those of a run by their versions. */
  addHookDeliveries(deliveries: readonly NewHookDelivery[]): Promise<void>;
  /** Counted to either bound. */
  hookBacklog(hook: string, max: HookBacklog): Promise<HookBacklog>;
}

/** How many hooks a tenant may have; each multiplies what is written for it. */
export const HOOKS_PER_TENANT_MAX = 20;
/** Together no more hooks than one list of the store holds, even where some were made at the same moment. */
const TENANTS_AT_ONCE = 25;
const HOOKS_AT_ONCE = 1_000;
const BACKLOG_PAGE = 1_000;
const BATCH_BYTES_MAX = 4 * 1024 * 1024;
/** A version as a part of an id: in the order of its number. */
const VERSION_DIGITS = 9;

function hookDeliveryId({ hook, run, version }: Pick<NewHookDelivery, 'hook' | 'run' | 'version'>): string {
  return `${hook}_${run}_${String(version).padStart(VERSION_DIGITS, '0')}`;
}

export class HookOutbox implements HookOutboxLedger {
  readonly #hooks: Collection<typeof hooksSpec>;
  readonly #states: Collection<typeof hookStatesSpec>;
  readonly #deliveries: Collection<typeof hookDeliveriesSpec>;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#hooks = store.collection(hooksSpec);
    this.#states = store.collection(hookStatesSpec);
    this.#deliveries = store.collection(hookDeliveriesSpec);
  }

  async hooksOf(tenants: readonly string[]): Promise<readonly HookSubscription[]> {
    const found: HookSubscription[] = [];
    for (let from = 0; from < tenants.length; from += TENANTS_AT_ONCE) {
      const some = tenants.slice(from, from + TENANTS_AT_ONCE);
      const rows = await this.#hooks.list({ where: { tenant: { in: some } }, limit: HOOKS_AT_ONCE, parts: [] });
      if (rows.length === 0) continue;
      const states = await this.#states.getMany(rows.map(({ id }) => id));
      const off = new Set(states.filter(({ switchedOffAt }) => switchedOffAt > 0).map(({ id }) => id));
      for (const row of rows) if (!off.has(row.id)) found.push(subscriptionOf(row));
    }
    return found;
  }

  async addHookDeliveries(deliveries: readonly NewHookDelivery[]): Promise<void> {
    for (const round of roundsOf(deliveries)) {
      for (let from = 0; from < round.length;) {
        const batch: DocumentOf<typeof hookDeliveriesSpec>[] = [];
        for (
          let bytes = 0;
          from < round.length && batch.length < BATCH_DOCUMENTS_MAX && bytes < BATCH_BYTES_MAX;
          from++
        ) {
          const row = newRow(round[from] as NewHookDelivery);
          batch.push(row);
          bytes += row.bytes;
        }
        // Over a lower revision only, and there is none: what is there stands (HOOKS-1).
        await this.#deliveries.replaceNewer(batch);
      }
    }
  }

  async hookBacklog(hook: string, max: HookBacklog): Promise<HookBacklog> {
    let [deliveries, bytes] = [0, 0];
    let after: { readonly id: string } | undefined;
    while (deliveries < max.deliveries && bytes < max.bytes) {
      const rows = await this.#deliveries.list({
        where: { open: true, hook },
        limit: Math.min(BACKLOG_PAGE, max.deliveries - deliveries),
        after,
        parts: [],
      });
      deliveries += rows.length;
      for (const row of rows) bytes += row.bytes;
      if (rows.length < BACKLOG_PAGE) break;
      after = rows.at(-1);
    }
    return { deliveries, bytes };
  }
}

/** The first of each hook and run, then the second ones: a batch is seen in any order, and they are sent in theirs (HOOKS-3). */
function roundsOf(deliveries: readonly NewHookDelivery[]): NewHookDelivery[][] {
  const rounds: NewHookDelivery[][] = [];
  const seen = new Map<string, number>();
  for (const delivery of deliveries) {
    const lane = `${delivery.hook} ${delivery.run}`;
    const round = seen.get(lane) ?? 0;
    seen.set(lane, round + 1);
    (rounds[round] ??= []).push(delivery);
  }
  return rounds;
}

function newRow(delivery: NewHookDelivery): DocumentOf<typeof hookDeliveriesSpec> {
  const { hook, run, version, event, body, createdAt } = delivery;
  return {
    id: hookDeliveryId(delivery),
    hook,
    run,
    runVersion: version,
    event,
    open: true,
    taken: false,
    asked: false,
    createdAt,
    dueAt: 0,
    attempts: 0,
    triedAt: 0,
    status: 0,
    answerMs: 0,
    why: '',
    endedAt: 0,
    bytes: Buffer.byteLength(body),
    revision: 0,
    step: 0,
    body,
  };
}

function subscriptionOf({
  id,
  tenant,
  events,
  repository,
}: Omit<DocumentOf<typeof hooksSpec>, 'secret'>): HookSubscription {
  return { id, tenant, events: events.split(',') as AnnouncementType[], repository };
}

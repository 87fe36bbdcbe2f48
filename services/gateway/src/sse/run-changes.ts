/**
 * `GET /runs/events`: which runs have changed, for all clients that may read them. Owns who listens, and the last change of each run
 * of the last hour. Changes come from the owners as they commit; each is heard once for all clients of this gateway.
 *
 *  CHANGES-1 A client is told of each run of its tenants that has changed, at least once, and last of its newest version; of several
 *     changes that come faster than it reads, only the newest.
 *  CHANGES-2 What may have been missed (a broken connection, an owner that died, another gateway's cursor) is looked up: the newest
 *     LISTED_MAX runs of its tenants, those that go on or have ended since. For those who are here that is since they may be: nobody knows
 *     for how long an owner, or this gateway, was away.
 *  CHANGES-3 A client that does not read costs PENDING_MAX changes, and is closed then; it comes back with its cursor.
 *  CHANGES-4 Who looks up what was missed takes turns by whose runs they are, and who is gone by its turn looks nothing up.
 */
import { FairTurns } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { subjects, type Bus, type BusSubscription, type CommittedEvents } from '@penstock/bus';
import { isEnded, isReached, tenantsOfReaches, type RunId, type RunView, type Version } from '@penstock/run';
import type { Owners, RunReads } from '@penstock/run-client';
import type { Log } from '@penstock/telemetry/log';
import { randomUUID } from 'node:crypto';
import type { StreamSink } from './client.ts';
import { PING_FRAME, RECONNECT_FRAME } from './frames.ts';

const KEPT_MS = 3_600_000;
/** Runs whose last change is kept: some megabytes. */
const KEPT_MAX = 20_000;
const PENDING_MAX = 2_000;
const PING_MS = 15_000;
/** Runs that are looked at for one that comes back from elsewhere, and how many at a time. */
const LISTED_MAX = 1_000;
const PAGE_RUNS = 100;
const LISTS_AT_ONCE = 2;
/** More than may be connected: all anonymous readers are of one key. */
const LISTS_WAITING = { perKeyMax: 20_000, keysMax: 20_000 };
/** Between the clocks of two gateways, and from a commit to its being heard. */
const CLOCKS_MS = 60_000;
/** Owners come and go several at a time. */
const LOOK_AGAIN_MS = 1_000;
/** Listens on for clients that come back soon. */
const LINGER_MS = 60_000;

interface RunChange {
  readonly id: RunId;
  readonly tenant: string;
  readonly pipelineName: string;
  readonly status: RunView['status'];
  readonly version: Version;
  readonly provider?: string | undefined;
  readonly repository?: string | undefined;
}

interface Kept {
  readonly at: number;
  readonly change: RunChange;
}

export interface RunChangesOptions {
  readonly bus: Bus;
  readonly owners: Owners;
  readonly reads: Pick<RunReads, 'newest'>;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class RunChanges {
  readonly #options: RunChangesOptions;
  /** Times in cursors are of this process. */
  readonly #instance = randomUUID().slice(0, 8);
  /** The one that changed longest ago first. */
  readonly #kept = new Map<RunId, Kept>();
  readonly #clients = new Map<string, Set<Client>>();
  readonly #all = new Set<Client>();
  readonly #lists = new FairTurns({
    atOnce: LISTS_AT_ONCE,
    waiting: { ...LISTS_WAITING, refusal: () => new Unavailable('Too many come back at the moment; try again.') },
  });
  #listening:
    | { readonly since: number; readonly subscription: BusSubscription; readonly stops: readonly (() => void)[] }
    | undefined;
  /** All changes since then are kept; none while some may have been missed. */
  #coveredFrom = Infinity;
  /** How many times it is being looked what was missed. */
  #looks = 0;
  #lastAt = 0;
  #pings: NodeJS.Timeout | undefined;
  #lookAgain: NodeJS.Timeout | undefined;
  #linger: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: RunChangesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Tells of changes behind the cursor, as it was sent with the last of them, until the client is gone. */
  async serve(sink: StreamSink, tenants: readonly string[], cursor: string | undefined): Promise<void> {
    if (this.#stopping) {
      sink.end(RECONNECT_FRAME);
      return;
    }
    this.#listen();
    const client = new Client(sink, tenants, (at) => `${this.#instance}.${at}`);
    this.#enter(client);
    const closed = new Promise<void>((resolve) => {
      if (sink.closed.aborted) resolve();
      sink.closed.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      await this.#catchUp(client, cursor);
      await closed;
    } finally {
      this.#leave(client);
    }
  }

  /** The clients are to come back to whoever is there then. */
  stop(): void {
    this.#stopping = true;
    for (const { sink } of this.#all) sink.end(RECONNECT_FRAME);
    this.#silence();
  }

  async #catchUp(client: Client, cursor: string | undefined): Promise<void> {
    const [, instance, text] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(cursor ?? '') ?? [];
    if (text === undefined) return;
    const at = Number(text);
    if (instance === this.#instance && at >= this.#coveredFrom) {
      for (const kept of this.#kept.values()) if (kept.at >= at) client.push(kept);
      return;
    }
    const since = Math.max(at - CLOCKS_MS, this.#options.now() - KEPT_MS);
    try {
      client.hold();
      const missed = await this.#changedSince(client.tenants, since, client.sink.closed);
      // Its cursor stays where it was until it has all of them.
      client.release(missed.map((change) => ({ at, change })));
    } catch (error) {
      // It comes back with the same cursor.
      this.#options.log.warn({ err: error }, 'what a client has missed of the changes of runs could not be read');
      client.sink.end();
    }
  }

  /** CHANGES-4 */
  #changedSince(tenants: readonly string[], since: number, gone?: AbortSignal): Promise<readonly RunChange[]> {
    return this.#lists.run(JSON.stringify(tenants), async () => {
      const changes: RunChange[] = [];
      let before: RunId | undefined;
      for (let listed = 0; listed < LISTED_MAX && gone?.aborted !== true; listed += PAGE_RUNS) {
        const page = { limit: PAGE_RUNS, withStages: false, ...(before === undefined ? {} : { before }) };
        const views = await this.#options.reads.newest(tenants, page);
        for (const view of views)
          if (!isEnded(view.status) || Date.parse(view.finishedAt ?? '') >= since) changes.push(changeOf(view));
        before = views.at(-1)?.id;
        if (views.length < PAGE_RUNS) break;
      }
      return changes.toReversed();
    });
  }

  #listen(): void {
    clearTimeout(this.#linger);
    this.#pings ??= setInterval(() => this.#ping(), PING_MS);
    if (this.#listening !== undefined) return;
    const { bus, owners } = this.#options;
    const subscription = bus.subscribe<CommittedEvents>(subjects.events('*'), (committed) => this.#heard(committed));
    const partitions = Array.from({ length: owners.partitions }, (_, partition) => partition);
    const stops = partitions.map((partition) => owners.onAskAgain(partition, () => this.#mayHaveMissed()));
    this.#listening = { since: this.#time(), subscription, stops };
    this.#coveredFrom = this.#listening.since;
  }

  #silence(): void {
    clearInterval(this.#pings);
    clearTimeout(this.#lookAgain);
    clearTimeout(this.#linger);
    this.#pings = undefined;
    this.#lookAgain = undefined;
    this.#listening?.subscription.stop();
    for (const stop of this.#listening?.stops ?? []) stop();
    this.#listening = undefined;
    this.#kept.clear();
    this.#coveredFrom = Infinity;
  }

  #heard({ runId, epoch, version, run }: CommittedEvents): void {
    const { owners } = this.#options;
    if (run === undefined || !owners.accepts(owners.partitionOf(runId), epoch)) return;
    this.#take({ id: runId, version, ...run });
  }

  #take(change: RunChange): void {
    const known = this.#kept.get(change.id);
    if (known !== undefined && known.change.version >= change.version) return;
    this.#kept.delete(change.id);
    const kept = { at: this.#time(), change };
    this.#kept.set(change.id, kept);
    this.#forgetOld(kept.at);
    for (const client of this.#clients.get(change.tenant) ?? []) client.push(kept);
  }

  #forgetOld(now: number): void {
    for (const [id, { at }] of this.#kept) {
      if (this.#kept.size <= KEPT_MAX && at > now - KEPT_MS) return;
      this.#kept.delete(id);
      this.#coveredFrom = Math.max(this.#coveredFrom, at + 1);
    }
  }

  /** An owner may have died between a commit and its telling, or a connection broken. */
  #mayHaveMissed(): void {
    this.#coveredFrom = Infinity;
    this.#lookAgain ??= setTimeout(() => {
      this.#lookAgain = undefined;
      void this.#lookForMissed();
    }, LOOK_AGAIN_MS);
  }

  async #lookForMissed(): Promise<void> {
    this.#looks += 1;
    const now = this.#options.now();
    // What was heard of it since is in memory, and told to nobody again.
    const since = Math.max((this.#listening?.since ?? now) - CLOCKS_MS, now - KEPT_MS);
    const asked = new Map([...this.#all].map((client) => [JSON.stringify(client.tenants), client.tenants]));
    for (const tenants of asked.values()) {
      try {
        for (const change of await this.#changedSince(tenants, since)) this.#take(change);
      } catch (error) {
        this.#options.log.warn({ err: error }, 'what may have been missed of the changes of runs could not be read');
        // Those who are left behind come back, and are told then.
        for (const client of this.#all)
          if (JSON.stringify(client.tenants) === JSON.stringify(tenants)) client.sink.end();
      }
    }
    this.#looks -= 1;
    // Of a client that was not here for it, or was left behind, a cursor from before says nothing of what was missed.
    if (this.#looks === 0 && this.#lookAgain === undefined && this.#listening !== undefined)
      this.#coveredFrom = this.#time() + 1;
  }

  #ping(): void {
    for (const { sink } of this.#all) {
      sink.closeIfStalled();
      if (sink.hasRoom) sink.write(PING_FRAME);
    }
  }

  #enter(client: Client): void {
    this.#all.add(client);
    for (const tenant of tenantsOfReaches(client.tenants)) {
      const clients = this.#clients.get(tenant);
      if (clients === undefined) this.#clients.set(tenant, new Set([client]));
      else clients.add(client);
    }
  }

  #leave(client: Client): void {
    this.#all.delete(client);
    for (const tenant of tenantsOfReaches(client.tenants)) {
      const clients = this.#clients.get(tenant);
      clients?.delete(client);
      if (clients?.size === 0) this.#clients.delete(tenant);
    }
    if (this.#all.size > 0 || this.#stopping) return;
    clearInterval(this.#pings);
    this.#pings = undefined;
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => this.#silence(), LINGER_MS).unref();
  }

  /** The wall clock, which never runs backwards here. */
  #time(): number {
    this.#lastAt = Math.max(this.#lastAt, Math.floor(this.#options.now()));
    return this.#lastAt;
  }
}

function changeOf({ id, tenant, pipelineName, status, version, provider, repository }: RunView): RunChange {
  return { id, tenant, pipelineName, status, version, provider, repository };
}

class Client {
  readonly sink: StreamSink;
  readonly tenants: readonly string[];
  readonly #cursorAt: (at: number) => string;
  readonly #pending = new Map<RunId, Kept>();
  #isFlushing = false;
  #isHeld = false;

  constructor(sink: StreamSink, tenants: readonly string[], cursorAt: (at: number) => string) {
    this.sink = sink;
    this.tenants = tenants;
    this.#cursorAt = cursorAt;
    sink.onRoom = () => this.#flush();
  }

  /** Nothing is sent before `release`: a client whose cursor has moved on would not be told again of what it has missed. */
  hold(): void {
    this.#isHeld = true;
  }

  /** What it has missed goes before what has happened since. */
  release(missed: readonly Kept[]): void {
    const since = [...this.#pending.values()];
    this.#pending.clear();
    this.#isHeld = false;
    for (const kept of [...missed, ...since]) this.push(kept);
  }

  push(kept: Kept): void {
    const { id, version } = kept.change;
    if (!isReached(this.tenants, kept.change)) return;
    const known = this.#pending.get(id);
    if (known !== undefined && known.change.version >= version) return;
    this.#pending.delete(id);
    this.#pending.set(id, kept);
    if (this.#pending.size > PENDING_MAX) this.sink.destroy();
    else if (!this.#isFlushing) {
      this.#isFlushing = true;
      // What comes in one turn of the loop is one write.
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#isFlushing = false;
    if (this.#isHeld || !this.sink.hasRoom) return;
    let frames = '';
    for (const { at, change } of this.#pending.values()) {
      const { id, pipelineName, status, version } = change;
      const data = JSON.stringify({ id, pipelineName, status, version });
      frames += `id: ${this.#cursorAt(at)}\nevent: run_changed\ndata: ${data}\n\n`;
    }
    this.#pending.clear();
    if (frames !== '') this.sink.write(Buffer.from(frames));
  }
}

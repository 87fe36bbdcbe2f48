/**
 * The simulated broker: logs with compare-and-set, keys with a time to live and an expiry marker, and who watches them.
 * What it has accepted is the truth that the oracle goes by. It forgets nothing when it is down; a power cut takes the
 * ends of its logs.
 */
import type { Chunk, LogEntry } from '@penstock/bus';
import type { AttemptLogRef } from '@penstock/scheduler/testing';
import { SimLogs } from './sim-logs.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

export interface KvEntry {
  readonly value: unknown;
  readonly revision: number;
  /** When the key was made. */
  readonly since: number;
  readonly expiresAt: number;
}

export type KvEvent =
  | { readonly kind: 'put'; readonly key: string; readonly value: unknown; readonly revision: number }
  | { readonly kind: 'expired'; readonly key: string; readonly revision: number };

export type Bucket = 'members' | 'runners' | 'controls' | 'fleet';

const BUCKETS = ['members', 'runners', 'controls', 'fleet'] as const;

interface Watch {
  readonly node: SimNode;
  readonly life: number;
  readonly bucket: Bucket;
  readonly handler: (event: KvEvent) => void;
  /** By key, the revision that it was last seen at. */
  readonly known: Map<string, number>;
  /** Events of one watch arrive in order. */
  arrivesAt: number;
  /** Of the bucket that it knows; a key of an earlier one is over one lease after that was seen to be gone. */
  bucketOf: number;
  readonly orphans: Set<string>;
  ready: (() => void) | undefined;
  /** Counts beginnings: what an earlier one has under way is not heard any more. */
  round: number;
  /** It missed something: it begins anew when its node can be reached. */
  stale: boolean;
  /** It has shown all that stood when it began. */
  isWhole: boolean;
  stopped: boolean;
}

export interface SimWatch {
  /** Calls back once it has shown the present values for the first time. */
  whenCurrent(then: () => void): void;
  /** Whether what it shows is as new as messages are fast. */
  readonly isHeard: boolean;
  stop(): void;
}

/** From the end of a key's time to its marker, at most. */
const EXPIRY_LAG_MS = 300;

export class SimBroker {
  up = true;
  /** It stores nothing, and says so. */
  full = false;
  /** Of each bucket: every change, in its order, as replicas take them over. */
  readonly #changes: Record<Bucket, { readonly at: number; readonly event: KvEvent }[]> = {
    members: [],
    runners: [],
    controls: [],
    fleet: [],
  };
  readonly #world: World;
  readonly #logs = new Map<number, LogEntry[]>();
  readonly #buckets: Record<Bucket, Map<string, KvEntry>> = {
    members: new Map(),
    runners: new Map(),
    controls: new Map(),
    fleet: new Map(),
  };
  /** When each bucket was made, and how long a lease in it lives. */
  readonly #made: Record<Bucket, number> = {
    members: Number.NEGATIVE_INFINITY,
    runners: Number.NEGATIVE_INFINITY,
    controls: Number.NEGATIVE_INFINITY,
    fleet: Number.NEGATIVE_INFINITY,
  };
  readonly #ttlMs: Record<Bucket, number> = { members: 0, runners: 0, controls: 0, fleet: 0 };
  /** What was removed lately, the oldest first. */
  readonly #removed: Record<Bucket, { readonly key: string; readonly entry: KvEntry; readonly at: number }[]> = {
    members: [],
    runners: [],
    controls: [],
    fleet: [],
  };
  /** A key's last revision, markers included. */
  readonly #revisions = new Map<string, number>();
  #watches: Watch[] = [];
  readonly #reconnections = new Set<{ readonly node: SimNode; readonly life: number; readonly tell: () => void }>();
  /** The stream `LOGS`. */
  readonly logs: SimLogs;
  readonly #storedAt = new WeakMap<LogEntry, number>();
  #sequence = 0;

  constructor(world: World) {
    this.#world = world;
    this.logs = new SimLogs(world);
  }

  // --- Logs --------------------------------------------------------------------------------------------------------

  log(partition: number): LogEntry[] {
    let log = this.#logs.get(partition);
    if (log === undefined) this.#logs.set(partition, (log = []));
    return log;
  }

  append(
    partition: number,
    bytes: Uint8Array,
    commitId: string,
    expectedSequence: number,
  ): number | 'refused' | 'full' {
    if (this.full) return 'full';
    const log = this.log(partition);
    if ((log.at(-1)?.sequence ?? 0) !== expectedSequence && this.#world.mutation !== 'no-expected-sequence')
      return 'refused';
    const entry: LogEntry = { sequence: ++this.#sequence, bytes, commitId };
    log.push(entry);
    this.#storedAt.set(entry, this.#world.now);
    this.#world.witness.committed(partition, entry);
    return entry.sequence;
  }

  /** Refused where it does not stop at a commit, as libs/bus sees to: after a power cut that one may be gone. */
  purge(partition: number, sequenceExclusive: number): number | 'refused' {
    const log = this.log(partition);
    const index = log.findIndex((entry) => entry.sequence === sequenceExclusive);
    const [first] = log;
    if (first !== undefined && sequenceExclusive < first.sequence) {
      // Asked before a later one, and on its way for longer: what it would remove is gone.
      this.#world.mark('purge overtaken by another');
      return 'refused';
    }
    if (index < 0) {
      // A purge that was long under way comes after a later one, and finds nothing to do.
      if ((log[0]?.sequence ?? 0) > sequenceExclusive) return 0;
      this.#world.check(
        this.#world.witness.isPartitionDisturbed(partition),
        'P8',
        `a purge of partition ${partition} stops at ${sequenceExclusive}, which is no commit of it`,
      );
      return 'refused';
    }
    this.#world.witness.purged(partition, log[index - 1]?.sequence ?? 0);
    if (index > 0) this.#world.mark('log purged');
    return log.splice(0, index).length;
  }

  /** The machine lost its power: the last commits of a log are gone. */
  loseEnd(partition: number, count: number): void {
    const log = this.log(partition);
    const lost = log.splice(Math.max(1, log.length - count));
    if (lost.length > 0) this.#world.witness.lostEnd(partition, log.at(-1), lost);
  }

  /** As a replica has the log that lacks what came within the last moment. */
  logAsOf(partition: number, behindMs: number): readonly LogEntry[] {
    const asOf = this.#world.now - behindMs;
    return this.log(partition).filter((entry) => (this.#storedAt.get(entry) ?? 0) <= asOf);
  }

  /** Null: it is full. */
  storeChunk(runId: string, runner: string, chunk: Chunk): number | null {
    return this.full ? null : this.logs.store(runId, runner, chunk);
  }

  /** Stores a mark; answers the sequence of the first one of this log (P21). Null: it is full. */
  markLog(log: AttemptLogRef): number | null {
    const { runId, runner, stage, attempt } = log;
    const at = this.#world.wallClock();
    const output = new Uint8Array();
    const sequence = this.storeChunk(runId, runner, { stage, attempt, offset: 0, at, parts: [], output, mark: true });
    return sequence === null ? null : this.#world.witness.logMarked(log, sequence);
  }

  // --- Keys --------------------------------------------------------------------------------------------------------

  get(bucket: Bucket, key: string): KvEntry | undefined {
    return this.#buckets[bucket].get(key);
  }

  all(bucket: Bucket): Map<string, KvEntry> {
    return new Map(this.#buckets[bucket]);
  }

  /** The keys that are there, or were within the last so many milliseconds. */
  *keysOf(bucket: Bucket, withinMs: number): Iterable<KvEntry & { readonly isPresent: boolean }> {
    for (const entry of this.#buckets[bucket].values()) yield { ...entry, isPresent: true };
    const removed = this.#removed[bucket];
    for (let index = removed.length - 1; index >= 0; index--) {
      const { entry, at } = removed[index] ?? {};
      if (entry === undefined || at === undefined || at < this.#world.now - withinMs) return;
      yield { ...entry, isPresent: false };
    }
  }

  /** Whether a lease has not run out by its own time, though its bucket may have been made anew. */
  mayLive(bucket: Bucket, key: string): boolean {
    if (this.#buckets[bucket].has(key)) return true;
    const last = this.#removed[bucket].findLast((removed) => removed.key === key);
    return last !== undefined && last.at === this.#made[bucket] && last.entry.expiresAt > this.#world.now;
  }

  ageMs(bucket: Bucket): number {
    return this.#world.now - this.#made[bucket];
  }

  /** Its stream was lost with all keys, and somebody has made it again: no marker says that they are over. */
  makeAnew(bucket: Bucket): void {
    const keys = this.#buckets[bucket];
    this.#made[bucket] = this.#world.now;
    for (const [key, entry] of keys) {
      this.#removed[bucket].push({ key, entry, at: this.#world.now });
      this.#revisions.set(`${bucket}.${key}`, ++this.#sequence);
    }
    keys.clear();
    this.#changes[bucket].length = 0;
    for (const watch of this.#watches) {
      if (watch.bucket !== bucket || watch.stopped) continue;
      watch.stale = true;
      this.#beginAnew(watch);
    }
  }

  /** Null: another revision stands there, or it is full. */
  put(bucket: Bucket, key: string, value: unknown, ttlMs: number, expectedRevision: number): number | null {
    if (this.full) return null;
    const id = `${bucket}.${key}`;
    if ((this.#revisions.get(id) ?? 0) !== expectedRevision) return null;
    const revision = ++this.#sequence;
    this.#revisions.set(id, revision);
    this.#ttlMs[bucket] = ttlMs;
    const since = this.#buckets[bucket].get(key)?.since ?? this.#world.now;
    this.#buckets[bucket].set(key, { value, revision, since, expiresAt: this.#world.now + ttlMs });
    this.#world.after(ttlMs + this.#world.random.between(0, EXPIRY_LAG_MS), () => this.#expire(bucket, key, revision));
    this.#notify(bucket, { kind: 'put', key, value, revision });
    return revision;
  }

  /** A key that stays, over whatever it held. False: it is full. */
  set(bucket: Bucket, key: string, value: unknown): boolean {
    if (this.full) return false;
    const revision = ++this.#sequence;
    this.#revisions.set(`${bucket}.${key}`, revision);
    const since = this.#world.now;
    this.#buckets[bucket].set(key, { value, revision, since, expiresAt: Number.POSITIVE_INFINITY });
    this.#notify(bucket, { kind: 'put', key, value, revision });
    return true;
  }

  delete(bucket: Bucket, key: string, expectedRevision: number): void {
    if (this.#buckets[bucket].get(key)?.revision === expectedRevision) this.#remove(bucket, key);
  }

  #expire(bucket: Bucket, key: string, revision: number): void {
    // A broker that is down removes nothing; it does when it is back.
    if (this.up && this.#buckets[bucket].get(key)?.revision === revision) this.#remove(bucket, key);
  }

  #remove(bucket: Bucket, key: string): void {
    const entry = this.#buckets[bucket].get(key);
    if (entry !== undefined) this.#removed[bucket].push({ key, entry, at: this.#world.now });
    this.#buckets[bucket].delete(key);
    const revision = ++this.#sequence;
    this.#revisions.set(`${bucket}.${key}`, revision);
    this.#notify(bucket, { kind: 'expired', key, revision });
  }

  // --- Watches -----------------------------------------------------------------------------------------------------

  watch(node: SimNode, bucket: Bucket, handler: (event: KvEvent) => void): SimWatch {
    this.#watches = this.#watches.filter(
      (watch) => !watch.stopped && watch.node.alive && watch.life === watch.node.life,
    );
    const watch: Watch = {
      node,
      life: node.life,
      bucket,
      handler,
      known: new Map(),
      arrivesAt: 0,
      bucketOf: this.#made[bucket],
      orphans: new Set(),
      ready: undefined,
      round: 0,
      stale: true,
      isWhole: false,
      stopped: false,
    };
    this.#watches.push(watch);
    this.#beginAnew(watch);
    const isUp = (): boolean => this.up;
    return {
      whenCurrent: (then) => {
        watch.ready = then;
      },
      get isHeard() {
        return isUp() && node.linked && !watch.stale && watch.isWhole;
      },
      stop: () => {
        watch.stopped = true;
      },
    };
  }

  /** Calls back each time that the process is connected again; answers how to end that. */
  onReconnected(node: SimNode, then: () => void): () => void {
    const { life } = node;
    const listener = { node, life, tell: then };
    this.#reconnections.add(listener);
    return () => void this.#reconnections.delete(listener);
  }

  /** The broker is back, or only this node is linked again: watches that missed something begin anew. */
  reconnected(only?: SimNode): void {
    for (const listener of this.#reconnections) {
      const { node, life, tell } = listener;
      if (life !== node.life) this.#reconnections.delete(listener);
      else if (this.up && node.linked && (only ?? node) === node) node.handle(life, tell);
    }
    for (const watch of this.#watches) if (watch.stale) this.#beginAnew(watch);
  }

  recover(): void {
    this.up = true;
    for (const bucket of BUCKETS) {
      for (const [key, { expiresAt }] of this.#buckets[bucket])
        if (expiresAt <= this.#world.now) this.#remove(bucket, key);
    }
    this.reconnected();
  }

  #notify(bucket: Bucket, event: KvEvent): void {
    this.#changes[bucket].push({ at: this.#world.now, event });
    for (const watch of this.#watches) {
      if (watch.bucket !== bucket || watch.stale || watch.stopped) continue;
      if (!watch.node.linked || !this.up) watch.stale = true;
      else this.#deliver(watch, event);
    }
  }

  #deliver(watch: Watch, event: KvEvent): void {
    const world = this.#world;
    // In order, and a little apart: sums of times are not exact.
    watch.arrivesAt = Math.max(watch.arrivesAt + 0.001, world.now + world.latency());
    const { round } = watch;
    world.after(watch.arrivesAt - world.now, () =>
      watch.node.handle(watch.life, () => {
        if (watch.stopped || watch.stale || watch.round !== round) return;
        if (!watch.node.linked) {
          watch.stale = true;
          return;
        }
        this.#hear(watch, event);
      }),
    );
  }

  /**
   * What a replica has: now, or as it was a moment ago, with the changes since behind it. What is known and missing in it, or older
   * than known, the leader decides; that comes when the watch hears it.
   */
  #picture(watch: Watch): { readonly present: KvEvent[]; readonly later: KvEvent[] } {
    const world = this.#world;
    const { staleReplica, staleMs } = world.profile;
    const isBehind = !world.healed && world.random.chance(staleReplica);
    const asOf = isBehind ? world.now - world.random.between(0, staleMs) : world.now;
    const present = new Map<string, KvEvent>();
    const later: KvEvent[] = [];
    for (const { at, event } of this.#changes[watch.bucket]) {
      if (at > asOf) later.push(event);
      else if (event.kind === 'put') present.set(event.key, event);
      else present.delete(event.key);
    }
    if (later.length > 0) world.mark('watch of a replica that is behind');
    const missing = [...watch.known.keys()].filter((key) => !present.has(key));
    const decided = missing.map((key) => this.#atLeader(watch.bucket, key));
    return { present: [...present.values(), ...decided], later };
  }

  #atLeader(bucket: Bucket, key: string): KvEvent {
    const held = this.#buckets[bucket].get(key);
    return held === undefined
      ? { kind: 'expired', key, revision: 0 }
      : { kind: 'put', key, value: held.value, revision: held.revision };
  }

  /** Nothing older than what is known is believed: the leader is asked. */
  #hear(watch: Watch, event: KvEvent): void {
    const known = watch.known.get(event.key);
    const isOld = known !== undefined && event.revision > 0 && event.revision < known;
    const heard = isOld ? this.#atLeader(watch.bucket, event.key) : event;
    watch.orphans.delete(heard.key);
    if (heard.kind === 'put') watch.known.set(heard.key, heard.revision);
    else watch.known.delete(heard.key);
    watch.handler(heard);
  }

  /** A bucket that was made anew says nothing of the keys of the old one: they are over one lease later. */
  #orphan(watch: Watch): void {
    const world = this.#world;
    const { bucket, node, life } = watch;
    const orphans = [...watch.known.keys()];
    watch.bucketOf = this.#made[bucket];
    watch.known.clear();
    for (const key of orphans) watch.orphans.add(key);
    const afterMs = world.mutation === 'forgets-the-old-bucket' ? 0 : this.#ttlMs[bucket];
    world.after(afterMs, () =>
      node.handle(life, () => {
        for (const key of orphans)
          if (!watch.stopped && watch.orphans.delete(key)) watch.handler({ kind: 'expired', key, revision: 0 });
      }),
    );
  }

  #beginAnew(watch: Watch): void {
    const world = this.#world;
    world.after(world.latency(), () => {
      if (watch.stopped || !watch.stale || !this.up || !watch.node.linked || watch.life !== watch.node.life) return;
      watch.stale = false;
      watch.isWhole = false;
      watch.round += 1;
      const { round } = watch;
      if (watch.bucketOf !== this.#made[watch.bucket]) this.#orphan(watch);
      const { present, later } = this.#picture(watch);
      for (const event of present) this.#deliver(watch, event);
      // Of what is paused the picture is whole when it is as new as the leader's (`asNewAsLeader`).
      if (watch.bucket === 'controls') this.#deliverLater(watch, later.splice(0));
      world.after(Math.max(0, watch.arrivesAt - world.now) + 1, () =>
        watch.node.handle(watch.life, () => {
          if (watch.round === round) watch.isWhole = true;
          const { ready } = watch;
          watch.ready = undefined;
          ready?.();
        }),
      );
      this.#deliverLater(watch, later);
    });
  }

  /** The replica catches up. */
  #deliverLater(watch: Watch, later: readonly KvEvent[]): void {
    if (later.length > 0) watch.arrivesAt += this.#world.random.between(0, this.#world.profile.staleMs);
    for (const event of later) this.#deliver(watch, event);
  }
}

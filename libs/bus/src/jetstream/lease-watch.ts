/**
 * Watching a bucket of leases. It owns a picture of the live keys and a consumer on the broker that keeps it current.
 *
 * LEASEWATCH-1 Whenever in doubt (a reconnect, a missing message, a silent consumer) the watch begins anew with a consumer on the
 *     last message of each key. That consumer reads from any replica, which may be behind: what was known and is missing in its
 *     picture, or older than known, is asked of the stream's leader, who alone decides that a key is gone (P5).
 * LEASEWATCH-2 A bucket that was made anew says nothing about the keys of the old one: they are reported as expired only when one
 *     lease has passed since (P5).
 * LEASEWATCH-3 A key that has outlived its TTL when a consumer begins is none: a broker that was killed shows such again (LEASE-4).
 * LEASEWATCH-4 Where `asNewAsLeader` asks for it, the picture is whole only once it holds the last message that the leader had when
 *     the consumer began: what a replica does not know yet is not taken for absent.
 */
import { randomUUID } from 'node:crypto';
import { type Msg, nanos, type Subscription } from '@nats-io/transport-node';
import { backoffMs, bootMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { isMarker, leaseAtLeader } from './lease.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { parseJson } from '../wire/body.ts';
import { brokerClock, hasOutlived } from './outlived.ts';
import { api, leaderMessage } from './stored.ts';
import { bucketStream } from './streams.ts';
import type { Wire } from '../wire/wire.ts';
import { RUNNER_LEASE_MS } from '../contract/protocol-times.ts';

export type LeaseEvent<V> =
  | { readonly kind: 'put'; readonly key: string; readonly value: V; readonly revision: number }
  /** The broker's marker (`revision` is the marker's; also for keys that were never seen), or the leader says that the key is gone (then 0). */
  | { readonly kind: 'expired'; readonly key: string; readonly revision: number };

export interface WatchOptions {
  /** LEASEWATCH-2: the longest lease in the bucket. Default `RUNNER_LEASE_MS`. */
  readonly leaseMs?: number | undefined;
  /** LEASEWATCH-4. Default false. */
  readonly asNewAsLeader?: boolean | undefined;
}

export interface LeaseWatch {
  /** Resolves when the values at the start have all been handled. Never rejects: it tries until `stop`. */
  readonly ready: Promise<void>;
  /** While false the picture may be old: the watch is being set up anew. */
  readonly current: boolean;
  /** When its consumer was last heard while the picture was whole, heartbeats included, by the boot clock; -Infinity: never yet. */
  readonly heardAt: number;
  stop(): void;
}

/** A consumer that is silent for two of these and a half is gone; below the 6 s of a membership. */
const HEARTBEAT_MS = 2_000;
const API_TIMEOUT_MS = 4_000;
/** Questions to the leader under way. */
const ASKED_AT_ONCE = 16;

export function watchLeases<V>(
  bus: Bus,
  bucket: string,
  handler: (event: LeaseEvent<V>) => void,
  options: WatchOptions = {},
): LeaseWatch {
  return new BucketWatch(bus, bucket, handler, { leaseMs: RUNNER_LEASE_MS, ...options });
}

/** One consumer's life. */
interface Round {
  readonly abort: AbortController;
  readonly seen: Set<string>;
  /** Messages that make up the values at the start; known once the consumer exists. */
  initial: number | null;
  delivered: number;
  /** Where the broker says that nothing is left behind this message. */
  drained: boolean;
  synced: boolean;
  /** The highest sequence that has come. */
  newest: number;
  /** LEASEWATCH-4: waits for this sequence. */
  awaited: { readonly sequence: number; come(): void } | undefined;
  /** The broker's time when the consumer was asked for. */
  begunAtMs: number;
  /** Why it could not go on. */
  failure: Error | null;
}

class BucketWatch<V> implements LeaseWatch {
  readonly ready: Promise<void>;
  current = false;
  heardAt = Number.NEGATIVE_INFINITY;
  readonly #bus: Bus;
  readonly #wire: Wire;
  readonly #bucket: string;
  readonly #stream: string;
  readonly #handler: (event: LeaseEvent<V>) => void;
  readonly #leaseMs: number;
  readonly #asNewAsLeader: boolean;
  readonly #stopped = new AbortController();
  #resolveReady: () => void = () => {};
  /** Live keys, each with the revision that it was last seen at. */
  #known = new Map<string, number>();
  /** When the bucket was created, as the broker says: tells a bucket from its successor. */
  #created: string | null = null;
  /** Keys of a bucket that is gone, with the timer that reports them (LEASEWATCH-2). */
  readonly #orphans = new Map<string, NodeJS.Timeout>();
  #round: Round | null = null;

  constructor(
    bus: Bus,
    bucket: string,
    handler: (event: LeaseEvent<V>) => void,
    { leaseMs = RUNNER_LEASE_MS, asNewAsLeader = false }: WatchOptions,
  ) {
    const wire = wireOf(bus);
    this.#bus = bus;
    this.#wire = wire;
    this.#bucket = bucket;
    this.#stream = bucketStream(bucket);
    this.#handler = handler;
    this.#leaseMs = leaseMs;
    this.#asNewAsLeader = asNewAsLeader;
    this.ready = new Promise((resolve) => {
      this.#resolveReady = resolve;
    });
    wire.events.on('disconnected', this.#onDisconnected);
    wire.events.once('closed', this.#onClosed);
    void this.#run();
  }

  stop(): void {
    if (this.#stopped.signal.aborted) return;
    this.current = false;
    this.#stopped.abort();
    this.#round?.abort.abort();
    this.#wire.events.off('disconnected', this.#onDisconnected);
    this.#wire.events.off('closed', this.#onClosed);
    for (const timer of this.#orphans.values()) clearTimeout(timer);
    this.#orphans.clear();
  }

  readonly #onDisconnected = (): void => this.#endRound('the connection broke');
  readonly #onClosed = (): void => this.stop();

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.#oneRound();
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (this.#wire.connected)
          this.#wire.log.warn({ err: error, bucket: this.#bucket }, 'a watch of leases could not begin');
      }
      await pause(backoffMs(failures + 1, BROKER_BACKOFF), signal).catch(() => {});
    }
  }

  /** Until something is in doubt. */
  async #oneRound(): Promise<void> {
    const round: Round = {
      abort: new AbortController(),
      seen: new Set(),
      initial: null,
      delivered: 0,
      drained: false,
      synced: false,
      newest: 0,
      awaited: undefined,
      begunAtMs: Number.NaN,
      failure: null,
    };
    const ended = new Promise<void>((resolve) =>
      round.abort.signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    this.#round = round;
    const consumer = `watch_${randomUUID()}`;
    let subscription: Subscription | undefined;
    const silence = setInterval(() => this.#endRound('the consumer is silent'), HEARTBEAT_MS * 2.5);
    const receive = this.#wire.received((message: Msg) => this.#receive(round, message));
    try {
      subscription = this.#wire.connection.subscribe(this.#wire.newInbox(), {
        callback: (error, message) => {
          silence.refresh();
          if (this.current) this.heardAt = bootMs();
          if (error === null) receive(message);
          else this.#endRound(error.message);
        },
      });
      await this.#noteBucket(round);
      const info = await api<{ num_pending: number }>(
        this.#wire,
        `CONSUMER.CREATE.${this.#stream}.${consumer}`,
        this.#consumerConfig(consumer, subscription.getSubject()),
        API_TIMEOUT_MS,
      );
      round.initial = info.num_pending + round.delivered;
      this.#maybeSynced(round);
      await ended;
      if (round.failure !== null) throw round.failure;
    } finally {
      clearInterval(silence);
      this.current = false;
      this.#round = null;
      subscription?.unsubscribe();
      // Where this fails the broker removes it by itself: nobody listens to it.
      if (this.#wire.connected)
        void api(this.#wire, `CONSUMER.DELETE.${this.#stream}.${consumer}`, undefined, API_TIMEOUT_MS).catch(() => {});
    }
  }

  #consumerConfig(name: string, deliverSubject: string): unknown {
    return {
      stream_name: this.#stream,
      action: 'create',
      config: {
        name,
        deliver_subject: deliverSubject,
        deliver_policy: 'last_per_subject',
        filter_subject: `$KV.${this.#bucket}.>`,
        ack_policy: 'none',
        replay_policy: 'instant',
        max_deliver: 1,
        mem_storage: true,
        num_replicas: 1,
        idle_heartbeat: nanos(HEARTBEAT_MS),
        inactive_threshold: nanos(HEARTBEAT_MS * 5),
      },
    };
  }

  /** LEASEWATCH-2. */
  async #noteBucket(round: Round): Promise<void> {
    const { nowMs, created } = await brokerClock(this.#wire, this.#stream, API_TIMEOUT_MS);
    round.begunAtMs = nowMs;
    if (this.#created !== null && this.#created !== created) {
      for (const key of this.#known.keys())
        this.#orphans.set(
          key,
          setTimeout(() => this.#reportOrphan(key), this.#leaseMs),
        );
      this.#known = new Map();
    }
    this.#created = created;
  }

  #reportOrphan(key: string): void {
    this.#orphans.delete(key);
    this.#emit({ kind: 'expired', key, revision: 0 });
  }

  #receive(round: Round, message: Msg): void {
    if (round !== this.#round) return;
    // A heartbeat has a status and no content.
    if ((message.headers?.code ?? 0) === 100) return;
    const { streamSequence, consumerSequence, storedAtMs, pending } = parseDelivery(message.reply ?? '');
    if (consumerSequence !== round.delivered + 1) return this.#endRound('a message is missing');
    round.delivered += 1;
    round.drained = pending === 0;
    const key = message.subject.slice(`$KV.${this.#bucket}.`.length);
    clearTimeout(this.#orphans.get(key));
    this.#orphans.delete(key);
    if (streamSequence >= (this.#known.get(key) ?? 0)) {
      round.seen.add(key);
      this.#take(key, message, streamSequence, hasOutlived({ storedAtMs, header: headerOf(message) }, round.begunAtMs));
    } else if (round.synced) void this.#askLeader(round, [key]);
    round.newest = Math.max(round.newest, streamSequence);
    if (round.awaited !== undefined && round.newest >= round.awaited.sequence) round.awaited.come();
    this.#maybeSynced(round);
  }

  #take(key: string, message: Msg, revision: number, isOver: boolean): void {
    if (isOver || isMarker({ header: headerOf(message) })) return this.#expired(key, revision);
    this.#known.set(key, revision);
    let value: V;
    try {
      value = parseJson<V>(message.data);
    } catch (error) {
      return this.#wire.log.warn({ err: error, bucket: this.#bucket, key }, 'a lease that is not JSON');
    }
    this.#emit({ kind: 'put', key, value, revision });
  }

  #expired(key: string, revision: number): void {
    this.#known.delete(key);
    this.#emit({ kind: 'expired', key, revision });
  }

  #maybeSynced(round: Round): void {
    if (round.synced || round.initial === null) return;
    if (round.delivered < round.initial && !(round.drained && round.delivered > 0)) return;
    round.synced = true;
    void this.#settle(round);
  }

  async #settle(round: Round): Promise<void> {
    if (this.#asNewAsLeader) await this.#catchUp(round);
    await this.#askLeader(
      round,
      [...this.#known.keys()].filter((key) => !round.seen.has(key)),
    );
    if (round !== this.#round || round.abort.signal.aborted) return;
    this.current = true;
    this.heardAt = bootMs();
    this.#resolveReady();
  }

  /** LEASEWATCH-4. Where the leader cannot say, the watch begins anew; a round that ends is waited for no more. */
  async #catchUp(round: Round): Promise<void> {
    try {
      const which = { last_by_subj: `$KV.${this.#bucket}.>` };
      const last = await leaderMessage(this.#wire, this.#stream, which, API_TIMEOUT_MS);
      if (last === null || round.newest >= last.sequence || round.abort.signal.aborted) return;
      await new Promise<void>((come) => {
        round.awaited = { sequence: last.sequence, come };
        round.abort.signal.addEventListener('abort', () => come(), { once: true });
      });
    } catch (error) {
      if (round !== this.#round) return;
      round.failure = error as Error;
      this.#endRound('the leader of the stream could not be asked');
    }
  }

  /** About keys that the replica lacks or shows older than they are known. Where the leader cannot say, the watch begins anew. */
  async #askLeader(round: Round, keys: readonly string[]): Promise<void> {
    try {
      for (let at = 0; at < keys.length && round === this.#round; at += ASKED_AT_ONCE)
        await Promise.all(keys.slice(at, at + ASKED_AT_ONCE).map((key) => this.#decide(round, key)));
    } catch (error) {
      if (round !== this.#round) return;
      round.failure = error as Error;
      this.#endRound('the leader of the stream could not be asked');
    }
  }

  async #decide(round: Round, key: string): Promise<void> {
    const known = this.#known.get(key);
    const held = await leaseAtLeader<V>(this.#bus, this.#bucket, key);
    // Newer than the question is what came meanwhile.
    if (round !== this.#round || this.#known.get(key) !== known) return;
    if (held === null) return this.#expired(key, 0);
    this.#known.set(key, held.revision);
    this.#emit({ kind: 'put', key, value: held.value, revision: held.revision });
  }

  #endRound(why: string): void {
    const round = this.#round;
    if (round === null || round.abort.signal.aborted) return;
    if (round.synced && round.failure === null)
      this.#wire.log.warn({ bucket: this.#bucket, why }, 'a watch of leases begins anew');
    this.current = false;
    round.abort.abort();
  }

  #emit(event: LeaseEvent<V>): void {
    try {
      this.#handler(event);
    } catch (error) {
      this.#wire.log.error({ err: error, bucket: this.#bucket, key: event.key }, 'a handler of lease events failed');
    }
  }
}

/** `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]`. */
function parseDelivery(reply: string): {
  readonly streamSequence: number;
  readonly consumerSequence: number;
  readonly storedAtMs: number;
  readonly pending: number;
} {
  const tokens = reply.split('.');
  const at = tokens.length > 9 ? 7 : 5;
  return {
    streamSequence: Number(tokens[at]),
    consumerSequence: Number(tokens[at + 1]),
    storedAtMs: Number(tokens[at + 2]) / 1e6,
    pending: Number(tokens[at + 3]),
  };
}

function headerOf(message: Msg): (name: string) => string {
  return (name) => message.headers?.get(name) ?? '';
}

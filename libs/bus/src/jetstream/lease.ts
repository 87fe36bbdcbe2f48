/**
 * A lease: a key in a KV bucket that the broker removes unless its holder writes it again in time (P5). Each write is a
 * plain publish with a TTL and a compare-and-set on the holder's last revision; the KV client's own update would drop
 * the TTL, and the key would live for ever.
 *
 * LEASE-1 A holder writes only over its own last revision: once the broker has removed the key, or another has written it,
 *     no late renewal is accepted.
 * LEASE-2 Silence is no answer: each write carries a mark, and what the key holds decides.
 * LEASE-3 What the key holds is read from a replica, which may be behind. It decides only from the sequence on that the leader
 *     named when it refused the write; an older picture, or none, says nothing (P5).
 * LEASE-4 A key that has outlived its TTL by the broker's own clock is over, though the broker shows it (`outlived.ts`).
 */
import assert from 'node:assert';
import { randomUUID } from 'node:crypto';
import { backoffMs, bootMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { BrokerAway, LeaseHeld, NoResponders, RequestTimeout, StoreRefused } from '../contract/errors.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { parseJson } from '../wire/body.ts';
import { heldSequences } from './held-sequences.ts';
import { hasOutlived } from './outlived.ts';
import { leaderMessage, replicaLast, store, StoreCode, type StoredMessage } from './stored.ts';
import { hasSequence, isSure, streamInfo, type StreamInfo } from './stream-info.ts';
import { bucketStream } from './streams.ts';
import type { Wire } from '../wire/wire.ts';

export interface LeaseOptions {
  /** At least 1,000: the broker takes no shorter one. */
  readonly ttlMs: number;
  /** Milliseconds of a clock that never goes back; its reading just before a publish is the renewal's `sentAtMs`. Default: the boot clock. */
  readonly now?: (() => number) | undefined;
  /** For each call, read-backs included. Default: a third of the TTL. */
  readonly timeoutMs?: number | undefined;
}

export type RenewResult =
  | { readonly kind: 'accepted'; readonly sentAtMs: number; readonly revision: number }
  /** The lease is over: never renew it again (P5). */
  | { readonly kind: 'lost' }
  /** No answer in time: it may have been renewed or not. Try again. */
  | { readonly kind: 'unanswered'; readonly cause: Error };

export interface Lease {
  readonly bucket: string;
  readonly key: string;
  /** Of the last accepted write. */
  readonly revision: number;
  readonly sentAtMs: number;
  /** Writes `value` (default: the last one) for another TTL. One call at a time (asserted). */
  renew(value?: unknown): Promise<RenewResult>;
  /** Deletes the key if it is still ours; watchers see it as expired. Waits for a renewal under way. */
  release(): Promise<void>;
}

/** `<holder>:<number of the write>`, the holder being unique to each acquisition. */
export const MARK_HEADER = 'Penstock-Lease';
const TTL_MS_MIN = 1_000;
/** One try of several within a call. */
const TRY_TIMEOUT_MS_MIN = 250;
/** A released key's marker goes away by itself, as an expired one's does. */
const RELEASE_MARKER_TTL_MS = 60_000;
/** An election may take longer: who asks tries again. */
const LEADER_TIMEOUT_MS = 4_000;
/** For some seconds: one that was just elected hears from the others within two. */
const LEADER_TRIES_MAX = 8;
/** Of one call of `endLease`. */
const END_TIMEOUT_MS = 4_000;
/** A dead holder's last renewal may come between two of them, and then its key's marker. */
const END_TRIES_MAX = 4;

/** Throws `LeaseHeld`, `BrokerAway`, `RequestTimeout`, `NoResponders`, `StoreRefused`, `NotPermitted`. */
export async function acquireLease(
  bus: Bus,
  bucket: string,
  key: string,
  value: unknown,
  options: LeaseOptions,
): Promise<Lease> {
  assert(options.ttlMs >= TTL_MS_MIN, `a lease of ${options.ttlMs} ms: the broker takes no TTL below ${TTL_MS_MIN} ms`);
  const lease = new KeyLease(wireOf(bus), bucket, key, options);
  await lease.acquire(value);
  return lease;
}

/**
 * Deletes the key of a holder that is known to be dead, and everything it stood for with it, before its TTL does; watchers
 * see it as expired. Nothing happens where it is gone. True: it lived until then, for sure. Throws what a request throws, and `StoreRefused`.
 */
export async function endLease(bus: Bus, bucket: string, key: string): Promise<boolean> {
  const wire = wireOf(bus);
  const subject = `$KV.${bucket}.${key}`;
  const mark = `end:${randomUUID()}`;
  const read = (): Promise<StoredMessage | null> => replicaLast(wire, bucketStream(bucket), subject, END_TIMEOUT_MS);
  const held = await read();
  if (held === null || isMarker(held)) return false;
  let revision = held.sequence;
  // What is written over what a refusal has named may stand over its marker.
  let isSure = true;
  for (let tries = 1; ; tries += 1) {
    try {
      await store(wire, subject, new Uint8Array(), markerOver(revision, mark), END_TIMEOUT_MS);
      return isSure;
    } catch (error) {
      // The replica was behind, a last renewal was still on its way (there is no further one), or an answer was lost.
      const last = lastSequenceIn(error);
      if (tries === END_TRIES_MAX || (last === undefined && !isSilence(error))) throw error;
      if (last === 0) return false;
      if ((await read())?.header(MARK_HEADER) === mark) return isSure;
      if (last === undefined) continue;
      revision = last;
      isSure = false;
    }
  }
}

function markerOver(revision: number, mark?: string): Parameters<typeof store>[3] {
  return {
    expectedLastSequence: revision,
    ttlMs: RELEASE_MARKER_TTL_MS,
    more: { 'KV-Operation': 'PURGE', 'Nats-Rollup': 'sub', ...(mark === undefined ? {} : { [MARK_HEADER]: mark }) },
  };
}

/** What a key holds, seen by one holder. */
type Held =
  | { readonly by: 'nobody' | 'me'; readonly revision: number; readonly write: number }
  | { readonly by: 'another' };

class KeyLease implements Lease {
  readonly bucket: string;
  readonly key: string;
  revision = 0;
  sentAtMs = 0;
  readonly #wire: Wire;
  readonly #subject: string;
  readonly #holder = randomUUID();
  readonly #ttlMs: number;
  readonly #timeoutMs: number;
  readonly #now: () => number;
  #writes = 0;
  /** Of the writes since the last accepted one: one that was given up may turn out to be the one that stands. */
  readonly #sentAtMs = new Map<number, number>();
  #value: unknown;
  #over = false;
  #busy: Promise<unknown> | null = null;

  constructor(wire: Wire, bucket: string, key: string, options: LeaseOptions) {
    this.bucket = bucket;
    this.key = key;
    this.#wire = wire;
    this.#subject = `$KV.${bucket}.${key}`;
    this.#ttlMs = options.ttlMs;
    this.#timeoutMs = options.timeoutMs ?? Math.ceil(options.ttlMs / 3);
    this.#now = options.now ?? bootMs;
  }

  async acquire(value: unknown): Promise<void> {
    const result = await this.#write(value);
    if (result.kind === 'unanswered') throw result.cause;
    if (result.kind === 'lost') throw new LeaseHeld(this.bucket, this.key);
  }

  async renew(value: unknown = this.#value): Promise<RenewResult> {
    assert(this.#busy === null, `two renewals of ${this.#subject} at a time`);
    if (this.#over) return { kind: 'lost' };
    const write = this.#write(value);
    this.#busy = write;
    try {
      return await write;
    } finally {
      this.#busy = null;
    }
  }

  async release(): Promise<void> {
    await this.#busy;
    if (this.#over) return;
    this.#over = true;
    try {
      await store(this.#wire, this.#subject, new Uint8Array(), markerOver(this.revision), this.#timeoutMs);
    } catch (error) {
      // Refused: it is not ours any more. No answer: it is gone, or goes when its TTL ends.
      if (!isSilence(error) && !isWrongSequence(error)) throw error;
    }
  }

  async #write(value: unknown): Promise<RenewResult> {
    const bytes = Buffer.from(JSON.stringify(value));
    const deadline = performance.now() + this.#timeoutMs;
    for (let attempt = 1; ; attempt += 1) {
      let trouble: Error;
      const leftMs = Math.max(1, deadline - performance.now());
      const tryMs = Math.min(leftMs, Math.max(TRY_TIMEOUT_MS_MIN, this.#timeoutMs / 3));
      try {
        return await this.#tryOnce(value, bytes, tryMs);
      } catch (error) {
        if (!isSilence(error) && !isWrongSequence(error)) throw error;
        trouble = error;
      }
      try {
        const settled = await this.#readBack(value, lastSequenceIn(trouble), tryMs);
        if (settled !== null) return settled;
      } catch (error) {
        if (!isSilence(error)) throw error;
        trouble = error;
      }
      const waitMs = backoffMs(attempt, BROKER_BACKOFF);
      if (performance.now() + waitMs >= deadline) return { kind: 'unanswered', cause: trouble };
      await pause(waitMs);
    }
  }

  async #tryOnce(value: unknown, bytes: Uint8Array, timeoutMs: number): Promise<RenewResult> {
    const write = ++this.#writes;
    const more = { [MARK_HEADER]: `${this.#holder}:${write}` };
    this.#sentAtMs.set(write, this.#now());
    const how = { expectedLastSequence: this.revision, ttlMs: this.#ttlMs, more };
    const { sequence } = await store(this.#wire, this.#subject, bytes, how, timeoutMs);
    return this.#accepted(write, sequence, value);
  }

  /** Null: not settled, write again over `this.revision`. `leaderLast`: where the leader refused, what it has last (LEASE-3). */
  async #readBack(value: unknown, leaderLast: number | undefined, timeoutMs: number): Promise<RenewResult | null> {
    const message =
      leaderLast === 0 ? null : await replicaLast(this.#wire, bucketStream(this.bucket), this.#subject, timeoutMs);
    if ((message?.sequence ?? 0) < (leaderLast ?? this.revision)) return null;
    const held = this.#holderOf(message);
    if (held.by === 'me') {
      if (held.write === this.#writes) return this.#accepted(held.write, held.revision, value);
      // An earlier write of ours that was given up has arrived after all: go on from there.
      if (held.revision > this.revision) this.#accepted(held.write, held.revision, value);
      return null;
    }
    if (held.by === 'nobody' && this.revision === 0) {
      if (held.revision === 0) return null;
      // The marker of an earlier holder, or of an earlier key of that name: a first write goes over it.
      return await this.#overMarker(held.revision, value, timeoutMs);
    }
    if (leaderLast === undefined && held.by === 'nobody') return null;
    this.#over = true;
    return { kind: 'lost' };
  }

  async #overMarker(revision: number, value: unknown, timeoutMs: number): Promise<RenewResult | null> {
    this.revision = revision;
    try {
      return await this.#tryOnce(value, Buffer.from(JSON.stringify(value)), timeoutMs);
    } catch (error) {
      if (!isWrongSequence(error)) throw error;
      this.revision = 0;
      return null;
    }
  }

  #accepted(write: number, revision: number, value: unknown): RenewResult {
    this.revision = revision;
    this.sentAtMs = this.#sentAtMs.get(write) ?? this.sentAtMs;
    this.#value = value;
    for (const known of this.#sentAtMs.keys()) if (known <= write) this.#sentAtMs.delete(known);
    return { kind: 'accepted', sentAtMs: this.sentAtMs, revision };
  }

  #holderOf(message: StoredMessage | null): Held {
    if (message === null) return { by: 'nobody', revision: 0, write: 0 };
    if (isMarker(message)) return { by: 'nobody', revision: message.sequence, write: 0 };
    const [holder, write] = message.header(MARK_HEADER).split(':');
    return holder === this.#holder ? { by: 'me', revision: message.sequence, write: Number(write) } : { by: 'another' };
  }
}

/**
 * What a key holds as the stream's leader knows it, which no replica's picture can tell for what is missing in it (P5); null: its
 * lease is over. A leader that was cut off from the others answers without what has been stored since: nothing is over for one that is not sure to lead.
 * Throws what a request throws, and `StoreRefused`: then nothing is known.
 */
export async function leaseAtLeader<V>(bus: Bus, bucket: string, key: string): Promise<LeaseValue<V> | null> {
  const wire = wireOf(bus);
  const stream = bucketStream(bucket);
  const subject = `$KV.${bucket}.${key}`;
  for (let tries = 1; ; tries += 1) {
    // One answer says that the key is not there and who has been heard from; its time is that of a key that is there.
    const [held, info] = await Promise.all([
      leaderMessage(wire, stream, { last_by_subj: subject }, LEADER_TIMEOUT_MS),
      streamInfo(wire, stream, LEADER_TIMEOUT_MS, { subjects_filter: subject }),
    ]);
    if (held !== null && isMarker(held)) return null;
    if (held !== null && !hasOutlived(held, Date.parse(info.ts ?? '')))
      return { value: parseJson<V>(held.bytes), revision: held.sequence };
    const isAsHeld = (info.state.subjects?.[subject] === undefined) === (held === null);
    if (isAsHeld && isSure(info) && (held === null || (await isStillHeld(wire, stream, held.sequence, info))))
      return null;
    if (tries === LEADER_TRIES_MAX) throw new StoreRefused(subject, 404, 'no leader of its stream is sure to be it');
    await pause(backoffMs(tries, BROKER_BACKOFF));
  }
}

/**
 * Whether who is sure to lead has that message too, and so no later one of its subject. A leader that was stopped, and wakes, may have
 * answered for what the key holds before it hears that another was elected, to which the holder has renewed.
 */
async function isStillHeld(wire: Wire, stream: string, sequence: number, { cluster }: StreamInfo): Promise<boolean> {
  if ((cluster?.replicas ?? []).length === 0) return true;
  const info = await heldSequences(wire, stream, LEADER_TIMEOUT_MS);
  return isSure(info) && hasSequence(info, sequence);
}

export interface LeaseValue<V> {
  readonly value: V;
  readonly revision: number;
}

/** The broker's expiry marker, or a deletion. */
export function isMarker(message: { header(name: string): string }): boolean {
  const operation = message.header('KV-Operation');
  return operation === 'DEL' || operation === 'PURGE' || message.header('Nats-Marker-Reason') !== '';
}

/** Nothing is known of the lease after it: no answer, or a broker that cannot store at present. */
function isSilence(error: unknown): error is Error {
  if (error instanceof StoreRefused) return !isWrongSequence(error);
  return error instanceof RequestTimeout || error instanceof BrokerAway || error instanceof NoResponders;
}

/** Of the key's last message, as the leader says that refused to write over another; 0: the key is gone, marker and all. */
function lastSequenceIn(error: unknown): number | undefined {
  if (!isWrongSequence(error)) return undefined;
  const said = /wrong last sequence: (\d+)/.exec(error.description)?.[1];
  return said === undefined ? undefined : Number(said);
}

function isWrongSequence(error: unknown): error is StoreRefused {
  return (
    error instanceof StoreRefused &&
    (error.code === StoreCode.wrongLastSequence || error.code === StoreCode.wrongLastSequenceUnknown)
  );
}

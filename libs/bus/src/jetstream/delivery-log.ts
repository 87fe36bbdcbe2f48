/**
 * The stream of deliveries (P24): a message a delivery, on a subject of its own that names its lane, and one durable
 * consumer that all ingests share. It owns nothing but the outcome of a write: whatever the broker answers, or does not
 * answer, the caller learns which message stands for the delivery.
 *
 * DELIVERYLOG-1 Of several writes of one delivery, from any number of processes, one is stored. The others are given its bytes.
 * DELIVERYLOG-2 What is removed has been acknowledged by the consumer, and everything before it too, and is all processed as far as its user
 *     can tell; or it was named one by one, by who has processed it.
 * DELIVERYLOG-3 A stream that is full gives up what is processed before its hour is over, rather than refuse what is new: who comes
 *     again is known from the store too.
 * DELIVERYLOG-4 What is stored through one bus is answered in the order in which it is stored.
 */
import { nanos, type MsgHdrs } from '@nats-io/transport-node';
import { backoffMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { BrokerAway, NoResponders, RequestTimeout, StoreRefused } from '../contract/errors.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { api, directBatch, leaderMessage, store, StoreCode, storeHeaders } from './stored.ts';
import { streams, subjects } from '../contract/subjects.ts';
import type { Wire } from '../wire/wire.ts';

type Persisted =
  | { readonly stored: true; readonly sequence: number }
  /** Another message, or this one by an earlier try whose answer was lost, stands for the delivery. */
  | { readonly stored: false; readonly first: Uint8Array };

export interface DeliveryPlace {
  /** What the processing takes turns between, and keeps in order: a token of a subject that follows from the delivery's id. */
  readonly lane: string;
  /** A name for what the delivery will be waiting for, and whose it is; said with its head. */
  readonly host: string;
}

interface LaneReadMost {
  readonly deliveries: number;
  readonly bytes: number;
}

interface StoredDelivery {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  /** By the broker's clock. */
  readonly storedAtMs: number;
}

/** One of all that stand in the stream, whatever its lane. */
export interface StandingDelivery {
  readonly sequence: number;
  /** Null: an earlier release has stored it, which named none. */
  readonly lane: string | null;
  readonly id: string;
  readonly bytes: Uint8Array;
  /** See `DeliveryPlace`. */
  readonly host: string;
  /** By the broker's clock. */
  readonly storedAtMs: number;
}

interface LaneRead {
  readonly deliveries: readonly StoredDelivery[];
  /** How many stand in the lane behind those. */
  readonly behind: number;
}

interface ConsumerInfo {
  readonly ack_floor: { readonly stream_seq: number };
  readonly num_ack_pending: number;
}

export interface DeliveryLog {
  /** Throws `StoreRefused`, `RequestTimeout`, `BrokerAway`, `NoResponders`, `MessageTooLarge`, `NotPermitted`. */
  persist(id: string, bytes: Uint8Array, place: DeliveryPlace): Promise<Persisted>;
  /** Null: it has been removed. */
  read(sequence: number): Promise<StoredDelivery | null>;
  /** What stands in a lane behind a sequence, in order, at least one of them where there is one. */
  readLane(lane: string, after: number, most: LaneReadMost): Promise<LaneRead>;
  /** The delivery of this id, if it was not removed yet. */
  find(id: string, lane: string): Promise<Uint8Array | null>;
  /** Creates the consumer where it is missing. Answers when it was made, by which one is told from another. */
  ensureConsumer(): Promise<string>;
  /** How many heads were handed out and are not acknowledged, all ingests together. */
  heldByAll(): Promise<number>;
  /** What the stream may hold. */
  most(): Promise<{ readonly deliveries: number; readonly bytes: number }>;
  /**
   * DELIVERYLOG-2: removes what was acknowledged, with everything before it, and stored before this time (milliseconds since 1970).
   * Answers whether more of that time may be there, behind what is not acknowledged.
   */
  removeProcessed(before: number): Promise<boolean>;
  /** Some of what was stored before this time and stands behind a sequence, in order, of all lanes; none: there is none. */
  readOld(after: number, before: number): Promise<readonly StandingDelivery[]>;
  /** DELIVERYLOG-2. What is gone already is no mistake. */
  removeEach(sequences: readonly number[]): Promise<void>;
}

export interface DeliveryLogOptions {
  /**
   * Asked for DELIVERYLOG-3: removes some of what is processed and stored before this time, also behind what is not acknowledged. Answers
   * whether it found any; where it did not, it is asked again a second later at the earliest.
   */
  readonly makeRoom?: ((before: number) => Promise<boolean>) | undefined;
  /**
   * DELIVERYLOG-2: asked before all up to a sequence is removed, of the stretch from the oldest on; answers the first of it that may not be
   * processed. What was acknowledged on the strength of a head may not be, where another ingest has removed that one.
   */
  readonly processedUpTo?: ((from: number, end: number) => Promise<number>) | undefined;
}

export const DELIVERY_CONSUMER = 'ingest';
/** Carries the host, since consumers are given heads only. */
export const HOST_HEADER = 'Penstock-Host';
/** A dead ingest's deliveries go to another after this. A living one says every third of it that it still works on them. */
export const ACK_WAIT_MS = 15_000;
/** Handed out and not acknowledged, all ingests together. */
const ACK_PENDING_MAX = 50_000;
const ATTEMPT_TIMEOUT_MS = 3_000;
const PERSIST_TRIES = 3;
/** All that is in the stream, by the one name for which the broker does not go through all subjects to count what follows. */
const ANY_DELIVERY = '>';
/** Strangers name hosts. */
const HOSTS_KEPT_MAX = 1_000;
/** Later than any message, by whatever clock. */
const ROOM_AHEAD_MS = 24 * 60 * 60 * 1000;
const IN_VAIN_MS = 1_000;
/** What a broker answers where a message is gone. What is not, for another reason, is found old once more. */
const GONE: ReadonlySet<number> = new Set([StoreCode.noMessage, StoreCode.noSequence, StoreCode.notDeleted]);
const OLD_AT_ONCE = { batch: 256, max_bytes: 4 * 1024 * 1024 };

export function openDeliveryLog(bus: Bus, options: DeliveryLogOptions = {}): DeliveryLog {
  return new JetStreamDeliveries(wireOf(bus), options);
}

class JetStreamDeliveries implements DeliveryLog {
  readonly #wire: Wire;
  /** By host: that nothing stands there yet, and the host. Making headers costs as much as encoding the delivery. */
  readonly #newOf = new Map<string, MsgHdrs>();
  readonly #makeMoreRoom: DeliveryLogOptions['makeRoom'];
  readonly #processedUpTo: (from: number, end: number) => Promise<number>;
  #makingRoom: Promise<void> | undefined;
  /** Not before this there may be something to find. */
  #moreRoomFrom = -Infinity;

  constructor(wire: Wire, { makeRoom, processedUpTo }: DeliveryLogOptions) {
    this.#wire = wire;
    this.#makeMoreRoom = makeRoom;
    this.#processedUpTo = processedUpTo ?? ((_, end) => Promise.resolve(end));
  }

  async persist(id: string, bytes: Uint8Array, { lane, host }: DeliveryPlace): Promise<Persisted> {
    const subject = subjects.delivery(lane, id);
    const how = this.#headersFor(host);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { sequence } = await store(this.#wire, subject, bytes, how, ATTEMPT_TIMEOUT_MS);
        return { stored: true, sequence };
      } catch (error) {
        if (attempt === PERSIST_TRIES || !(isUndecided(error) || isFull(error))) throw error;
        if (isFull(error)) await this.#makeRoom();
        else if (!isTaken(error)) await pause(backoffMs(attempt, BROKER_BACKOFF));
      }
      const first = await this.find(id, lane);
      if (first !== null) return { stored: false, first };
    }
  }

  #headersFor(host: string): MsgHdrs {
    let made = this.#newOf.get(host);
    if (made === undefined) {
      if (this.#newOf.size >= HOSTS_KEPT_MAX) this.#newOf.clear();
      made = storeHeaders({ expectedLastSequence: 0, more: { [HOST_HEADER]: host } });
      this.#newOf.set(host, made);
    }
    return made;
  }

  async find(id: string, lane: string): Promise<Uint8Array | null> {
    const message = await leaderMessage(
      this.#wire,
      streams.deliveries,
      { last_by_subj: subjects.delivery(lane, id) },
      ATTEMPT_TIMEOUT_MS,
    );
    return message?.bytes ?? null;
  }

  async read(sequence: number): Promise<StoredDelivery | null> {
    return await leaderMessage(this.#wire, streams.deliveries, { seq: sequence }, ATTEMPT_TIMEOUT_MS);
  }

  async readLane(lane: string, after: number, most: LaneReadMost): Promise<LaneRead> {
    const which = { seq: after + 1, next_by_subj: subjects.delivery(lane, '*') };
    const request = { ...which, batch: most.deliveries, max_bytes: most.bytes };
    const read = await directBatch(this.#wire, streams.deliveries, request, ATTEMPT_TIMEOUT_MS);
    const last = read.at(-1);
    if (last !== undefined) return { deliveries: read, behind: Number(last.header('Nats-Num-Pending')) || 0 };
    // A replica may be behind, and nothing is what a lane's end is known by.
    const next = await leaderMessage(this.#wire, streams.deliveries, which, ATTEMPT_TIMEOUT_MS);
    return { deliveries: next === null ? [] : [next], behind: 0 };
  }

  async most(): Promise<{ readonly deliveries: number; readonly bytes: number }> {
    interface Info {
      config: { max_msgs: number; max_bytes: number };
    }
    const info = await api<Info>(this.#wire, `STREAM.INFO.${streams.deliveries}`, undefined, ATTEMPT_TIMEOUT_MS);
    const { max_msgs: deliveries, max_bytes: bytes } = info.config;
    // -1: without a bound.
    return { deliveries: deliveries < 0 ? Infinity : deliveries, bytes: bytes < 0 ? Infinity : bytes };
  }

  async ensureConsumer(): Promise<string> {
    const config = {
      durable_name: DELIVERY_CONSUMER,
      name: DELIVERY_CONSUMER,
      deliver_policy: 'all',
      ack_policy: 'explicit',
      replay_policy: 'instant',
      ack_wait: nanos(ACK_WAIT_MS),
      max_ack_pending: ACK_PENDING_MAX,
      // Without a bound: deliveries that fail again and again are counted by us, and the broker never drops one.
      max_deliver: -1,
      headers_only: true,
    };
    const { created } = await api<{ created: string }>(
      this.#wire,
      `CONSUMER.CREATE.${streams.deliveries}.${DELIVERY_CONSUMER}`,
      { stream_name: streams.deliveries, config },
      ATTEMPT_TIMEOUT_MS,
    );
    return created;
  }

  async heldByAll(): Promise<number> {
    return (await this.#consumerInfo()).num_ack_pending;
  }

  async #consumerInfo(): Promise<ConsumerInfo> {
    const operation = `CONSUMER.INFO.${streams.deliveries}.${DELIVERY_CONSUMER}`;
    return await api<ConsumerInfo>(this.#wire, operation, undefined, ATTEMPT_TIMEOUT_MS);
  }

  async removeProcessed(before: number): Promise<boolean> {
    const { ack_floor: floor } = await this.#consumerInfo();
    const request = { seq: 1, batch: 1, next_by_subj: ANY_DELIVERY };
    const [oldest] = await directBatch(this.#wire, streams.deliveries, request, ATTEMPT_TIMEOUT_MS);
    if (oldest === undefined || !(oldest.storedAtMs < before)) return false;
    if (oldest.sequence > floor.stream_seq) return true;
    const startTime = { batch: 1, next_by_subj: ANY_DELIVERY, start_time: new Date(before).toISOString() };
    const [younger] = await directBatch(this.#wire, streams.deliveries, startTime, ATTEMPT_TIMEOUT_MS);
    const acknowledged = Math.min(floor.stream_seq + 1, younger?.sequence ?? Infinity);
    const keepFrom = await this.#processedUpTo(oldest.sequence, acknowledged);
    if (keepFrom > oldest.sequence)
      await api(this.#wire, `STREAM.PURGE.${streams.deliveries}`, { seq: keepFrom }, ATTEMPT_TIMEOUT_MS);
    return keepFrom !== younger?.sequence;
  }

  async readOld(after: number, before: number): Promise<readonly StandingDelivery[]> {
    const request = { seq: after + 1, next_by_subj: ANY_DELIVERY, ...OLD_AT_ONCE };
    const read = await directBatch(this.#wire, streams.deliveries, request, ATTEMPT_TIMEOUT_MS);
    return read
      .filter(({ storedAtMs }) => storedAtMs < before)
      .map(({ sequence, subject, bytes, storedAtMs, header }) => ({
        sequence,
        ...namesIn(subject),
        bytes,
        host: header(HOST_HEADER),
        storedAtMs,
      }));
  }

  async removeEach(sequences: readonly number[]): Promise<void> {
    await Promise.all(
      sequences.map(async (seq) => {
        const request = { seq, no_erase: true };
        try {
          await api(this.#wire, `STREAM.MSG.DELETE.${streams.deliveries}`, request, ATTEMPT_TIMEOUT_MS);
        } catch (error) {
          if (!(error instanceof StoreRefused && GONE.has(error.code))) throw error;
        }
      }),
    );
  }

  /** DELIVERYLOG-3. Once for all writes that find the stream full at the same time. */
  #makeRoom(): Promise<void> {
    this.#makingRoom ??= this.#makeSome(Date.now() + ROOM_AHEAD_MS).finally(() => (this.#makingRoom = undefined));
    return this.#makingRoom;
  }

  async #makeSome(before: number): Promise<void> {
    const isMoreThere = await this.removeProcessed(before);
    if (!isMoreThere || performance.now() < this.#moreRoomFrom) return;
    const hasFound = await this.#makeMoreRoom?.(before);
    if (hasFound !== true) this.#moreRoomFrom = performance.now() + IN_VAIN_MS;
  }
}

/** `delivery.<lane>.<id>`, or of earlier releases `delivery.<id>`. */
export function namesIn(subject: string): { readonly lane: string | null; readonly id: string } {
  const from = subject.indexOf('.') + 1;
  const end = subject.indexOf('.', from);
  return end < 0
    ? { lane: null, id: subject.slice(from) }
    : { lane: subject.slice(from, end), id: subject.slice(end + 1) };
}

function isTaken(error: unknown): boolean {
  return (
    error instanceof StoreRefused &&
    (error.code === StoreCode.wrongLastSequence || error.code === StoreCode.wrongLastSequenceUnknown)
  );
}

function isFull(error: unknown): boolean {
  return (
    error instanceof StoreRefused &&
    (error.code === StoreCode.storeFailed ||
      error.code === StoreCode.insufficientResources ||
      error.code === StoreCode.storageExceeded)
  );
}

/** Whether the delivery may stand in the stream, by this write or another. */
function isUndecided(error: unknown): boolean {
  return (
    isTaken(error) ||
    error instanceof RequestTimeout ||
    error instanceof NoResponders ||
    (error instanceof BrokerAway && error.sent)
  );
}

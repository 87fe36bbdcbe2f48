/**
 * Taking deliveries from their durable consumer. It owns what it has been handed and not acknowledged: heads only, the
 * content is read when a delivery's turn comes (P24).
 *
 * DELIVERYCONSUMER-1 At most `heldMax` are held at a time (twice as many for a moment, after a pull that was given up).
 * DELIVERYCONSUMER-2 While one is held, the broker hears of it every third of its patience; if that does not reach it, it hands the delivery
 *     out again, to us (then it is still one) or to another ingest. So one may be processed by two at a time.
 * DELIVERYCONSUMER-3 No more are asked for in a second than its user wants: what is not asked for waits at the broker, in order.
 * DELIVERYCONSUMER-4 A consumer counts what it hands out. One that counts from less than was heard is another, or has lost what it knew, and
 *     the stream may be another, too, with the same sequences. So is one that was made at another time, which is asked whenever a pull ended without
 *     its messages, and after each connection: others may have been handed more by then. What was held until then is held no more, and no
 *     acknowledgement of it is sent.
 */
import { nanos, type Msg, type Subscription } from '@nats-io/transport-node';
import { backoffMs, within } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import {
  ACK_WAIT_MS,
  DELIVERY_CONSUMER,
  type DeliveryLog,
  HOST_HEADER,
  namesIn,
  openDeliveryLog,
} from './delivery-log.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { streams } from '../contract/subjects.ts';
import type { Wire } from '../wire/wire.ts';

export interface HeldDelivery {
  readonly sequence: number;
  /** Null: an earlier release has stored it, which named none. */
  readonly lane: string | null;
  /** See `DeliveryPlace`. All that has come with the head is kept until this or `bytes` is asked for: who holds it for long asks at once. */
  readonly host: string;
  readonly bytes: number;
  /** As far as the broker knows it was handed out to nobody before. */
  readonly isFirst: boolean;
  /** By the broker's clock. */
  readonly storedAtMs: number;
  /** Processed, or sure to be: never handed out again, unless this message does not reach the broker. */
  acknowledge(): void;
}

export interface DeliveryConsumerOptions {
  /** Called once for each delivery held. */
  readonly onDelivery: (delivery: HeldDelivery) => void;
  /** Default 4,000. */
  readonly heldMax?: number | undefined;
  /** DELIVERYCONSUMER-4: told before the first delivery that is handed out anew. What is not acknowledged comes again. */
  readonly onAnew?: (() => void) | undefined;
  /** How many are to come in a second now, asked before each pull; what was asked for already comes all the same. Default as many as can. */
  readonly perSecond?: (() => number) | undefined;
}

export interface DeliveryConsumer {
  readonly held: number;
  /**
   * How many waited at the broker for being handed out, behind the last that came; 0 when there was nothing to hand out. Infinity: of
   * those that may be held more than half are, and what comes now may wait for as long as they do.
   */
  readonly behind: number;
  /** What is held, or on its way here, goes to others at once; where that message does not reach the broker, after its patience. */
  stop(): Promise<void>;
}

const HELD_MAX = 4_000;
const ACK_PREFIX = '$JS.ACK.';
const ACKNOWLEDGED = Buffer.from('+ACK');
const PULL_MS = 20_000;
/** Between pulls where not all are wanted that can come. */
const PACE_MS = 50;
const HEARTBEAT_MS = 2_000;
/** A broker that is there answers in a hundredth of it. */
const STOP_MS_MAX = 1_000;

export function startDeliveryConsumer(bus: Bus, options: DeliveryConsumerOptions): DeliveryConsumer {
  const log = openDeliveryLog(bus);
  return new PullConsumer(wireOf(bus), options, () => log.ensureConsumer());
}

class PullConsumer implements DeliveryConsumer {
  readonly #wire: Wire;
  readonly #onDelivery: (delivery: HeldDelivery) => void;
  readonly #heldMax: number;
  readonly #onAnew: () => void;
  readonly #perSecond: () => number;
  readonly #ensureConsumer: DeliveryLog['ensureConsumer'];
  /** By sequence: where the broker wants the acknowledgement sent. */
  #held = new Map<number, string>();
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #working: NodeJS.Timeout;
  readonly #silence: NodeJS.Timeout;
  /** The next pull is made by this one, or by what it has begun. */
  #retry: NodeJS.Timeout | undefined;
  /** Messages that the pull under way may still bring; 0: none is under way. */
  #wanted = 0;
  #pulls = 0;
  #pulledAt = -Infinity;
  #failures = 0;
  #behind = 0;
  /** By the consumer's count. */
  #lastHandedOut = 0;
  /** When the consumer was made; undefined: not asked yet. */
  #made: string | undefined;
  #stopped = false;
  readonly #onReconnected = (): void => void this.#lookAfterConsumer().finally(() => this.#pull());

  constructor(wire: Wire, options: DeliveryConsumerOptions, ensureConsumer: DeliveryLog['ensureConsumer']) {
    this.#wire = wire;
    this.#ensureConsumer = ensureConsumer;
    this.#onDelivery = options.onDelivery;
    this.#heldMax = options.heldMax ?? HELD_MAX;
    this.#onAnew = options.onAnew ?? (() => {});
    this.#perSecond = options.perSecond ?? (() => Infinity);
    this.#inbox = wire.newInbox();
    const receive = wire.received((message: Msg) => this.#receive(message));
    this.#subscription = wire.connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) =>
        error === null ? receive(message) : wire.log.error({ err: error }, 'the deliveries cannot be heard'),
    });
    this.#working = setInterval(() => this.#sayWorking(), ACK_WAIT_MS / 3);
    this.#silence = setInterval(() => this.#pull(), HEARTBEAT_MS * 2.5);
    wire.events.on('reconnected', this.#onReconnected);
    void this.#lookAfterConsumer().finally(() => this.#pull());
  }

  get held(): number {
    return this.#held.size;
  }

  get behind(): number {
    return this.#held.size > this.#heldMax / 2 ? Infinity : this.#behind;
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearInterval(this.#working);
    clearInterval(this.#silence);
    clearTimeout(this.#retry);
    this.#wire.events.off('reconnected', this.#onReconnected);
    for (const reply of this.#held.values()) this.#answer(reply, '-NAK');
    if (this.#wire.connected) await within(STOP_MS_MAX, this.#subscription.drain(), () => {}).catch(() => {});
    this.#subscription.unsubscribe();
  }

  /** A new request takes the place of the one before, whose messages are still welcome. */
  #pull(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const room = this.#heldMax - this.#held.size;
    if (this.#stopped || room <= 0 || !this.#wire.connected) return;
    const perSecond = this.#perSecond();
    const now = performance.now();
    const waitMs = perSecond === Infinity ? 0 : this.#pulledAt + PACE_MS - now;
    if (waitMs > 0) {
      this.#retry = setTimeout(() => this.#pull(), waitMs);
      return;
    }
    const batch = Math.min(room, Math.ceil((perSecond * PACE_MS) / 1000));
    this.#pulledAt = now;
    this.#pulls += 1;
    this.#wanted = batch;
    const request = { batch, expires: nanos(PULL_MS), idle_heartbeat: nanos(HEARTBEAT_MS) };
    try {
      this.#wire.send(
        `$JS.API.CONSUMER.MSG.NEXT.${streams.deliveries}.${DELIVERY_CONSUMER}`,
        JSON.stringify(request),
        undefined,
        `${this.#inbox}.${this.#pulls}`,
      );
    } catch (error) {
      this.#wire.log.warn({ err: error }, 'deliveries cannot be asked for; tried again');
    }
  }

  #receive(message: Msg): void {
    this.#silence.refresh();
    // Headers cost as much as all the rest, and most heads are acknowledged unseen: a status has no place to be acknowledged at.
    const code = message.reply?.startsWith(ACK_PREFIX) === true ? 0 : (message.headers?.code ?? 0);
    if (code === 100 || code === 408) this.#behind = 0;
    if (code === 100) return;
    if (this.#stopped && code !== 0) return;
    if (code !== 0 || (message.data.length === 0 && message.reply === undefined)) return this.#pullEnded(code, message);
    if (this.#stopped) return this.#answer(message.reply ?? '', '-NAK');
    this.#failures = 0;
    const { sequence, behind, count } = placeOf(message.reply ?? '');
    this.#behind = behind;
    if (count <= this.#lastHandedOut) this.#startAnew();
    this.#lastHandedOut = count;
    const held = this.#held;
    const known = held.has(sequence);
    held.set(sequence, message.reply ?? '');
    this.#wanted -= 1;
    if (!known)
      this.#onDelivery(
        new Head(sequence, message, () => {
          if (held === this.#held) this.#acknowledge(sequence);
        }),
      );
    if (this.#wanted <= 0) this.#pull();
  }

  /** 408: its time is over; 409: too much is unacknowledged, or the consumer was deleted; 503: nobody is there. */
  #pullEnded(code: number, message: Msg): void {
    // An earlier pull's end says nothing about this one. A status comes to the very subject that was asked from.
    if (message.subject !== `${this.#inbox}.${this.#pulls}`) return;
    this.#wanted = 0;
    if (code === 408) return this.#pull();
    this.#failures += 1;
    this.#retry ??= setTimeout(
      () => {
        // The stream may have been made anew, without its consumer.
        void this.#lookAfterConsumer().finally(() => this.#pull());
      },
      backoffMs(this.#failures, BROKER_BACKOFF),
    );
  }

  async #lookAfterConsumer(): Promise<void> {
    try {
      const made = await this.#ensureConsumer();
      if (this.#stopped) return;
      if (this.#made !== undefined && this.#made !== made) this.#startAnew();
      this.#made = made;
    } catch (error) {
      if (!this.#stopped) this.#wire.log.warn({ err: error }, 'the consumer of deliveries is missing');
    }
  }

  /** DELIVERYCONSUMER-4 */
  #startAnew(): void {
    this.#held = new Map();
    this.#lastHandedOut = 0;
    this.#made = undefined;
    this.#onAnew();
  }

  #acknowledge(sequence: number): void {
    const reply = this.#held.get(sequence);
    if (reply === undefined || this.#stopped) return;
    this.#held.delete(sequence);
    this.#answer(reply, ACKNOWLEDGED);
    // Where that is so soon anyway, the consumer may have to be made first.
    const isAsked = this.#wanted > 0 || this.#retry !== undefined;
    if (!isAsked && this.#held.size <= this.#heldMax / 2) this.#pull();
  }

  #sayWorking(): void {
    for (const reply of this.#held.values()) this.#answer(reply, '+WPI');
  }

  #answer(to: string, message: string | Uint8Array): void {
    if (this.#wire.connected) this.#wire.send(to, message);
  }
}

class Head implements HeldDelivery {
  readonly sequence: number;
  readonly lane: string | null;
  readonly acknowledge: () => void;
  /** Until it has been looked at: it keeps all that was received with it. */
  #message: Msg | undefined;
  readonly #reply: string;
  #host = '';
  #bytes = 0;

  constructor(sequence: number, message: Msg, acknowledge: () => void) {
    this.sequence = sequence;
    this.lane = namesIn(message.subject).lane;
    this.#message = message;
    this.#reply = message.reply ?? '';
    this.acknowledge = acknowledge;
  }

  get host(): string {
    this.#look();
    return this.#host;
  }

  get bytes(): number {
    this.#look();
    return this.#bytes;
  }

  get isFirst(): boolean {
    return placeOf(this.#reply).handedOut === 1;
  }

  get storedAtMs(): number {
    return placeOf(this.#reply).storedAtMs;
  }

  #look(): void {
    const headers = this.#message?.headers;
    this.#message = undefined;
    if (headers === undefined) return;
    this.#host = headers.get(HOST_HEADER);
    this.#bytes = Number(headers.get('Nats-Msg-Size')) || 0;
  }
}

interface Place {
  readonly sequence: number;
  /** How often, this time included. */
  readonly handedOut: number;
  /** Of all that the consumer has handed out, each time counted. */
  readonly count: number;
  readonly storedAtMs: number;
  readonly behind: number;
}

/** `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<handed out>.<stream seq>.<consumer seq>.<stored at, in nanoseconds>.<behind>[.…]` */
function placeOf(reply: string): Place {
  const tokens = reply.split('.');
  const from = tokens.length > 9 ? 6 : 4;
  return {
    handedOut: Number(tokens[from]),
    sequence: Number(tokens[from + 1]),
    count: Number(tokens[from + 2]),
    storedAtMs: Number(tokens[from + 3]?.slice(0, -6)),
    behind: Number(tokens[from + 4]) || 0,
  };
}

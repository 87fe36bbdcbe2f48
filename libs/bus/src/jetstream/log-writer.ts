/**
 * Storing log chunks. It owns the chunks that are handed over and not acknowledged yet.
 *
 * LOGWRITER-1 At most `inFlightMax` messages and `inFlightBytesMax` bytes are unacknowledged (one larger chunk goes alone), and
 *     at most `waitingMax` wait behind them.
 * LOGWRITER-2 Chunks are sent in the order of the calls. After a failure nothing is sent until all that was under way has been
 *     answered or given up; then the unanswered ones go again, in their order, before the rest.
 */
import { backoffMs } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { BrokerAway, LogQueueFull, MessageTooLarge, NotPermitted } from '../contract/errors.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { store } from './stored.ts';
import type { Wire } from '../wire/wire.ts';

export interface LogWriterOptions {
  /** Unacknowledged messages. Default 256. */
  readonly inFlightMax?: number | undefined;
  /** Their bytes. Default 4 MiB. */
  readonly inFlightBytesMax?: number | undefined;
  /** Messages waiting for the window. Default 1,024. */
  readonly waitingMax?: number | undefined;
  /** Of one try. Default 5,000. */
  readonly attemptTimeoutMs?: number | undefined;
}

export interface LogWriter {
  /**
   * Stores the bytes (`encodeChunk`) on `subject` (`subjects.log`), trying until they are acknowledged or the writer is
   * closed. Chunks are sent in the order of the calls; after a failure one may be stored twice, or after its
   * successors: readers go by the offset in the chunk's head. Throws `LogQueueFull`, `MessageTooLarge`, `NotPermitted`.
   */
  publish(subject: string, bytes: Uint8Array): Promise<{ readonly sequence: number }>;
  /** Resolves when another `publish` will not have to wait: the back-pressure. Throws `BrokerAway` when closed. */
  room(): Promise<void>;
  /** Unacknowledged, waiting ones included. */
  readonly pending: number;
  /** What is not acknowledged yet is rejected with `BrokerAway`. */
  close(): void;
}

/** Acknowledgements take 0.1 to 4 ms: as many chunks keep the broker busy. */
const IN_FLIGHT_MAX = 256;
/** 64 of the largest chunks: what a runner holds in memory for its log, and the broker in its ingest queue for it. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;
const WAITING_MAX = 1_024;
const ATTEMPT_TIMEOUT_MS = 5_000;

export function createLogWriter(bus: Bus, options: LogWriterOptions = {}): LogWriter {
  return new ChunkWriter(wireOf(bus), options);
}

interface Item {
  readonly number: number;
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly resolve: (stored: { sequence: number }) => void;
  readonly reject: (error: Error) => void;
}

interface RoomWaiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

class ChunkWriter implements LogWriter {
  readonly #wire: Wire;
  readonly #inFlightMax: number;
  readonly #inFlightBytesMax: number;
  readonly #waitingMax: number;
  readonly #timeoutMs: number;
  #waiting: Item[] = [];
  #failed: Item[] = [];
  readonly #inFlight = new Set<Item>();
  #inFlightBytes = 0;
  #nextNumber = 0;
  /** Failures in a row; 0: all is well. */
  #failures = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #roomWaiters: RoomWaiter[] = [];
  #closed = false;

  constructor(wire: Wire, options: LogWriterOptions) {
    this.#wire = wire;
    this.#inFlightMax = options.inFlightMax ?? IN_FLIGHT_MAX;
    this.#inFlightBytesMax = options.inFlightBytesMax ?? IN_FLIGHT_BYTES_MAX;
    this.#waitingMax = options.waitingMax ?? WAITING_MAX;
    this.#timeoutMs = options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_MS;
  }

  get pending(): number {
    return this.#waiting.length + this.#failed.length + this.#inFlight.size;
  }

  publish(subject: string, bytes: Uint8Array): Promise<{ sequence: number }> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError());
      if (this.#waiting.length >= this.#waitingMax) return reject(new LogQueueFull(this.#waiting.length));
      this.#waiting.push({ number: this.#nextNumber++, subject, bytes, resolve, reject });
      this.#pump();
    });
  }

  room(): Promise<void> {
    if (this.#closed) return Promise.reject(closedError());
    if (this.#hasRoom()) return Promise.resolve();
    return new Promise((resolve, reject) => this.#roomWaiters.push({ resolve, reject }));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    for (const item of [...this.#inFlight, ...this.#failed, ...this.#waiting]) item.reject(closedError());
    for (const waiter of this.#roomWaiters) waiter.reject(closedError());
    this.#inFlight.clear();
    this.#failed = [];
    this.#waiting = [];
    this.#roomWaiters = [];
  }

  #hasRoom(): boolean {
    return (
      this.#failures === 0 &&
      this.#waiting.length === 0 &&
      this.#inFlight.size < this.#inFlightMax &&
      this.#inFlightBytes < this.#inFlightBytesMax
    );
  }

  #pump(): void {
    while (!this.#closed && this.#failures === 0 && this.#inFlight.size < this.#inFlightMax) {
      const item = this.#waiting[0];
      if (item === undefined) break;
      if (this.#inFlight.size > 0 && this.#inFlightBytes + item.bytes.length > this.#inFlightBytesMax) break;
      this.#waiting.shift();
      this.#send(item);
    }
    if (!this.#hasRoom() || this.#roomWaiters.length === 0) return;
    const waiters = this.#roomWaiters;
    this.#roomWaiters = [];
    for (const waiter of waiters) waiter.resolve();
  }

  #send(item: Item): void {
    this.#inFlight.add(item);
    this.#inFlightBytes += item.bytes.length;
    store(this.#wire, item.subject, item.bytes, {}, this.#timeoutMs).then(
      (stored) => {
        this.#land(item);
        item.resolve(stored);
        this.#pump();
      },
      (error: Error) => {
        this.#land(item);
        if (this.#closed) return;
        if (error instanceof MessageTooLarge || error instanceof NotPermitted) {
          item.reject(error);
          return this.#pump();
        }
        this.#failed.push(item);
        if (this.#failures === 0)
          this.#wire.log.warn({ err: error, pending: this.pending }, 'log chunks could not be stored, trying again');
        this.#failures = Math.max(1, this.#failures);
        this.#maybeRetry();
      },
    );
  }

  #land(item: Item): void {
    this.#inFlightBytes -= item.bytes.length;
    this.#inFlight.delete(item);
    if (this.#failures > 0) this.#maybeRetry();
  }

  /** LOGWRITER-2. Begins with one chunk: while the broker is away there is one try a second, not a window full. */
  #maybeRetry(): void {
    if (this.#closed || this.#inFlight.size > 0 || this.#retryTimer !== undefined || this.#failed.length === 0) return;
    this.#retryTimer = setTimeout(
      () => {
        this.#retryTimer = undefined;
        void this.#retry();
      },
      backoffMs(this.#failures, BROKER_BACKOFF),
    );
  }

  async #retry(): Promise<void> {
    const [first, ...rest] = this.#failed.toSorted((one, other) => one.number - other.number);
    if (first === undefined || this.#closed) return;
    try {
      const stored = await store(this.#wire, first.subject, first.bytes, {}, this.#timeoutMs);
      if (this.#closed) return;
      first.resolve(stored);
      this.#failures = 0;
      this.#failed = [];
      this.#waiting = [...rest, ...this.#waiting];
      this.#pump();
    } catch (error) {
      this.#failures += 1;
      if (error instanceof NotPermitted) {
        first.reject(error);
        this.#failed = rest;
        if (rest.length === 0) this.#failures = 0;
        return rest.length === 0 ? this.#pump() : this.#maybeRetry();
      }
      this.#wire.log.warn({ err: error, failures: this.#failures }, 'log chunks still cannot be stored');
      this.#maybeRetry();
    }
  }
}

function closedError(): BrokerAway {
  return new BrokerAway('the log writer is closed', true);
}

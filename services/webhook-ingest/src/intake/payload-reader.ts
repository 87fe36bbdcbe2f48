/**
 * From the bytes of a body to what the provider reads in them. A large body is parsed on a thread of its own, so that nobody's
 * push holds up the loop that others' requests need.
 *
 *  PAYLOAD-1 One large body is parsed at a time, and each has a deadline: the thread of one that is late is ended.
 *  PAYLOAD-2 Those whose bodies wait take turns, and hold a quarter of what is free of the room for it at most. So whoever sends as many as can
 *     be sent, another's waits for one of them.
 */
import { Worker } from 'node:worker_threads';
import { FairQueue, FairRoom } from '@penstock/async';
import { BadUserInput, Unavailable } from '@penstock/errors';
import { LARGE_BYTES, nextPiece } from '../providers/large-work.ts';
import type { Provider, Reading } from '../providers/provider.ts';
import { readPayload, type PayloadAnswer, type PayloadTask } from './payload.ts';

/** Below a millisecond or two here; handing it over takes about as long. */
const INLINE_BYTES_MAX = 128 * 1024;
/** The largest body of each of three, or hundreds of the smallest of one alone. */
const WAITING = { shared: 160 * 1024 * 1024, own: 0 };
const WAITING_OF_ONE_MAX = 256;
const WHO_WAIT_MAX = 1_000;
/** The worst 25 MiB take 2 s, and several times that on a machine that has much else to do. */
const DEADLINE_MS = 30_000;
const RETRY_SECS = 5;
/** What the worst 25 MiB become in memory. */
const THREAD_HEAP_MB_MAX = 1_024;
/** Of that for what is new: with the default it would be collected a hundred times over before it is done. */
const THREAD_YOUNG_MB_MAX = 128;

export interface PayloadReaderOptions {
  readonly deadlineMs?: number | undefined;
  /** Another program for the thread, in tests. */
  readonly workerUrl?: URL | undefined;
}

export class PayloadReader {
  readonly #deadlineMs: number;
  readonly #workerUrl: URL;
  readonly #room = new FairRoom(WAITING);
  readonly #waiting = new FairQueue<() => void>(WAITING_OF_ONE_MAX, WHO_WAIT_MAX);
  #isParsing = false;
  #worker: Worker | undefined;

  constructor(options: PayloadReaderOptions = {}) {
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#workerUrl = options.workerUrl ?? new URL('./payload-worker.ts', import.meta.url);
  }

  /**
   * Throws `BadUserInput`, and `Unavailable` where it cannot be read in time. A large body goes to the thread as it is, without
   * a copy, and is empty afterwards. `whose` is asked where it is large (PAYLOAD-2).
   */
  async read(provider: Provider, event: string, body: Buffer, whose: () => string): Promise<Reading> {
    const { length } = body;
    if (length > LARGE_BYTES && length <= INLINE_BYTES_MAX) await nextPiece();
    if (length <= INLINE_BYTES_MAX) return readPayload(provider, event, body);
    const who = whose();
    if (!this.#room.take(who, length)) throw busy();
    try {
      const answer = await this.#inTurn(who, () => this.#ask({ provider: provider.name, event, body }));
      if (answer.ok) return answer.reading;
      throw new BadUserInput(answer.message);
    } finally {
      this.#room.giveBack(who, length);
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  async #inTurn<T>(who: string, work: () => Promise<T>): Promise<T> {
    if (this.#isParsing)
      await new Promise<void>((resolve, reject) => {
        if (!this.#waiting.add(who, resolve)) reject(busy());
      });
    this.#isParsing = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.next();
      // Until that one begins nobody else may.
      this.#isParsing = next !== undefined;
      next?.();
    }
  }

  #ask(task: PayloadTask): Promise<PayloadAnswer> {
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<PayloadAnswer>();
    const end = (cause?: unknown): void =>
      reject(
        new Unavailable('The body could not be read in time; send it again.', { cause, retryAfterSecs: RETRY_SECS }),
      );
    const late = setTimeout(() => {
      // At once: its answer may be here before its end is, and no other body is to be given to it.
      this.#leave(worker);
      void worker.terminate();
    }, this.#deadlineMs);
    worker.ref();
    worker.once('message', resolve).once('error', end).once('exit', end);
    worker.postMessage(task, ownMemoryOf(task.body));
    return promise.finally(() => {
      clearTimeout(late);
      // A thread without work keeps no process alive.
      worker.unref();
      worker.off('message', resolve).off('error', end).off('exit', end);
    });
  }

  #start(): Worker {
    const worker = new Worker(this.#workerUrl, {
      resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB_MAX, maxYoungGenerationSizeMb: THREAD_YOUNG_MB_MAX },
    });
    // Between two bodies, too: the next one would wait for it without an end.
    for (const over of ['error', 'exit'] as const) worker.on(over, () => this.#leave(worker));
    return worker;
  }

  #leave(worker: Worker): void {
    if (this.#worker === worker) this.#worker = undefined;
  }
}

/** What can go to another thread without a copy: memory that holds this body and nothing else. */
function ownMemoryOf({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}

function busy(): Unavailable {
  return new Unavailable('Too many large deliveries are being read; send it again.', { retryAfterSecs: RETRY_SECS });
}

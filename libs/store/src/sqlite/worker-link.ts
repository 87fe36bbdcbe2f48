/**
 * The main thread's end of the worker thread. It owns the thread, the calls under way and their deadlines.
 *
 * WORKERLINK-1 Every call settles: by its answer, by its deadline, or by the end of the thread.
 * WORKERLINK-2 Calls that the thread has not answered are bounded in number and bytes, also those that are past their deadline: they wait in
 *     its memory. Beyond, a call is refused at once and nothing was done.
 * WORKERLINK-3 A thread that dies takes its calls along as StoreUnavailable; the next call starts another one.
 * WORKERLINK-4 The thread keeps the process alive only while calls are under way.
 */
import { Worker } from 'node:worker_threads';
import type { CollectionSpec } from '../port.ts';
import type { DatabaseOptions } from './database.ts';
import type { Operation, Results } from './engine.ts';
import { errorOf, type Failure } from '../failure.ts';
import { monotonicMs } from './monotonic.ts';
import type { WorkerAnswer, WorkerCall, WorkerStart } from './worker.ts';

/** A projector and a gateway have a few dozen calls under way; thousands mean that the disk has stopped. */
const CALLS_MAX = 4_000;
const CALL_BYTES_MAX = 256 * 1024 * 1024;
/** Where a release has declared another index, opening builds it: over millions of documents that takes minutes. A lock is waited for no longer than by a call. */
const OPEN_MS_MAX = 10 * 60_000;
/** After closing begins; SQLite's last checkpoint writes some MiB. */
const CLOSE_MS = 10_000;
/** What is new in the thread lives for one call. With the default it grows to ten times that, which nobody ever asks back. */
const THREAD_YOUNG_MB_MAX = 6;

interface Pending {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
  readonly expiresAtMs: number;
}

export class WorkerLink {
  readonly #start: WorkerStart;
  readonly #deadlineMs: number;
  /** In the order of sending, which is that of answering and of expiring. */
  readonly #pending = new Map<number, Pending>();
  /** Bytes of each call that the thread has not answered, whether or not anybody waits for it still. */
  readonly #unanswered = new Map<number, number>();
  #unansweredBytes = 0;
  #worker: Worker | null = null;
  #lastId = 0;
  #timer: NodeJS.Timeout | null = null;
  #closing: Promise<void> | null = null;

  private constructor(start: WorkerStart, deadlineMs: number) {
    this.#start = start;
    this.#deadlineMs = deadlineMs;
  }

  static async open(
    options: DatabaseOptions & { readonly deadlineMs: number },
    specs: readonly CollectionSpec[],
  ): Promise<WorkerLink> {
    const { deadlineMs, ...database } = options;
    const link = new WorkerLink({ ...database, specs }, deadlineMs);
    try {
      await link.call({ kind: 'ping' }, 0, OPEN_MS_MAX);
      return link;
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  call<O extends Operation>(operation: O, bytes = 0, deadlineMs = this.#deadlineMs): Promise<Results[O['kind']]> {
    return new Promise((resolve, reject) => {
      if (this.#closing !== null) return reject(this.#error({ tag: 'unavailable', problem: 'it was closed' }));
      const { size } = this.#unanswered;
      if (size >= CALLS_MAX || (this.#unansweredBytes > 0 && this.#unansweredBytes + bytes > CALL_BYTES_MAX))
        return reject(this.#error({ tag: 'unavailable', problem: `it is busy with ${size} calls` }));
      const worker = (this.#worker ??= this.#startWorker());
      const id = ++this.#lastId;
      const expiresAtMs = monotonicMs() + deadlineMs;
      if (this.#pending.size === 0) worker.ref();
      this.#pending.set(id, { resolve, reject, expiresAtMs });
      this.#unanswered.set(id, bytes);
      this.#unansweredBytes += bytes;
      this.#timer ??= setTimeout(() => this.#expire(), deadlineMs);
      worker.postMessage({ id, expiresAtMs, operation } satisfies WorkerCall);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    worker.ref();
    worker.postMessage({ close: true } satisfies WorkerCall);
    const deadline = setTimeout(() => void worker.terminate(), CLOSE_MS);
    await new Promise<void>((resolve) => (this.#worker === null ? resolve() : worker.once('exit', () => resolve())));
    clearTimeout(deadline);
  }

  #startWorker(): Worker {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: this.#start,
      name: 'penstock-store',
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_MB_MAX },
    });
    let end: Failure = { tag: 'unavailable', problem: 'its thread ended' };
    worker.on('message', (answer: WorkerAnswer) => {
      // The file could not be opened: that is the answer to every call so far. The next one tries again.
      if (answer.id !== 0) this.#settle(answer);
      else if ('failure' in answer) {
        end = answer.failure;
        if (this.#worker === worker) this.#abandon(end);
        void worker.terminate();
      }
    });
    worker.on('error', (cause) => {
      end = { tag: 'unavailable', problem: 'its thread failed', cause };
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#abandon(end);
    });
    worker.unref();
    return worker;
  }

  #settle(answer: WorkerAnswer): void {
    this.#unansweredBytes -= this.#unanswered.get(answer.id) ?? 0;
    this.#unanswered.delete(answer.id);
    const pending = this.#remove(answer.id);
    if (pending === undefined) return;
    if ('failure' in answer) pending.reject(this.#error(answer.failure));
    else pending.resolve(answer.result as never);
  }

  #abandon(failure: Failure): void {
    this.#worker = null;
    this.#unanswered.clear();
    this.#unansweredBytes = 0;
    for (const id of [...this.#pending.keys()]) this.#remove(id)?.reject(this.#error(failure));
  }

  #expire(): void {
    this.#timer = null;
    const now = monotonicMs();
    for (const [id, pending] of this.#pending) {
      if (pending.expiresAtMs > now) {
        this.#timer = setTimeout(() => this.#expire(), pending.expiresAtMs - now);
        return;
      }
      this.#remove(id)?.reject(this.#error({ tag: 'unavailable', problem: `no answer within ${this.#deadlineMs} ms` }));
    }
  }

  #remove(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    this.#pending.delete(id);
    if (this.#pending.size === 0) {
      if (this.#timer !== null) clearTimeout(this.#timer);
      this.#timer = null;
      if (this.#closing === null) this.#worker?.unref();
    }
    return pending;
  }

  #error(failure: Failure): Error {
    return errorOf(this.#start.path, failure);
  }
}

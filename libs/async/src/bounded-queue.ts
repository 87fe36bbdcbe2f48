/**
 * Work in the order of asking, a few pieces at a time. It is p-queue with two rules of ours:
 *
 * QUEUE-1 A caller whose signal aborts gives up waiting. A piece that has begun keeps its place until it ends: the signal does not
 *         let the next one in beside it.
 * QUEUE-2 Where `waitingMax` pieces wait already, another one is refused.
 */
import PQueue from 'p-queue';

export interface BoundedQueueOptions {
  readonly atOnce: number;
  /** Left out only where the callers are few by themselves. */
  readonly waiting?: { readonly max: number; readonly refusal: () => Error } | undefined;
}

export class BoundedQueue {
  readonly #queue: PQueue;
  readonly #waiting: BoundedQueueOptions['waiting'];

  constructor({ atOnce, waiting }: BoundedQueueOptions) {
    this.#queue = new PQueue({ concurrency: atOnce });
    this.#waiting = waiting;
  }

  /** Settles as `work` does. Throws the refusal, or the signal's reason where that aborts before the work begins. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#waiting !== undefined && this.#queue.size >= this.#waiting.max) throw this.#waiting.refusal();
    // QUEUE-1: p-queue would let the next piece in when the signal of a running one aborts.
    const waiting = new AbortController();
    const giveUp = (): void => waiting.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    const begin = (): Promise<T> => {
      signal?.removeEventListener('abort', giveUp);
      return work();
    };
    try {
      return await this.#queue.add(begin, { signal: waiting.signal });
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }
}

/** Operations that cost much, a few at a time for each caller: what they hold in memory is bounded, and one caller's are in line. */
import { BoundedQueue } from '@penstock/async';
import { RateLimited } from '@penstock/errors';

const AT_ONCE = 2;
const WAITING_MAX = 20;
const RETRY_SECS = 5;

export class HeavyOperations {
  /** Of callers that have one under way or waiting. */
  readonly #callers = new Map<string, { readonly queue: BoundedQueue; operations: number }>();

  /** Throws `RateLimited` where too many of this caller's wait already, or the signal's reason where it aborts before `work` begins. */
  async run<T>(caller: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const known = this.#callers.get(caller) ?? { queue: newQueue(), operations: 0 };
    this.#callers.set(caller, known);
    known.operations += 1;
    try {
      return await known.queue.run(work, signal);
    } finally {
      known.operations -= 1;
      if (known.operations === 0) this.#callers.delete(caller);
    }
  }
}

function newQueue(): BoundedQueue {
  return new BoundedQueue({ atOnce: AT_ONCE, waiting: { max: WAITING_MAX, refusal } });
}

function refusal(): RateLimited {
  return new RateLimited('Too many costly queries of yours are under way: wait for their answers.', {
    retryAfter: RETRY_SECS,
  });
}

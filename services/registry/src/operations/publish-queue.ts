/** Work that is heavy for the machine, a few pieces at a time in the order of the calls; no more than so many of them wait. */
import { Unavailable } from '@penstock/errors';
import PQueue from 'p-queue';

export class PublishQueue {
  readonly #queue: PQueue;
  readonly #waitingMax: number;

  constructor(atOnce: number, waitingMax: number) {
    this.#queue = new PQueue({ concurrency: atOnce });
    this.#waitingMax = waitingMax;
  }

  /** Throws `Unavailable` where too many wait already. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#queue.size >= this.#waitingMax)
      throw new Unavailable('Too many packages are being published at the moment.');
    return (await this.#queue.add(work)) as T;
  }
}

/**
 * What a large body holds of the room for bodies, by what has come of it: from its first byte until the response is over and nothing is done
 * with it any more. Who hangs up gives back nothing that is still looked at.
 */
import type { EventEmitter } from 'node:events';
import type { FairRoom } from '@penstock/async';
import { Unavailable } from '@penstock/errors';

export class HeldBody {
  readonly #room: FairRoom;
  readonly #who: string;
  #bytes = 0;
  /** What has use for it: the response, and work. */
  #users = 1;

  constructor(room: FairRoom, who: string, response: Pick<EventEmitter, 'once'>) {
    this.#room = room;
    this.#who = who;
    response.once('close', () => this.#leave());
  }

  /** Throws `Unavailable` where so many bytes are too much. */
  grow(bytes: number): void {
    if (!this.#room.take(this.#who, bytes - this.#bytes))
      throw new Unavailable('Too many large deliveries are being received; send it again.', { retryAfterSecs: 5 });
    this.#bytes = bytes;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#users += 1;
    try {
      return await work();
    } finally {
      // The next work with it begins in this turn.
      setImmediate(() => this.#leave());
    }
  }

  #leave(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#room.giveBack(this.#who, this.#bytes);
  }
}

/**
 * At most so many at once, and half as many for one server, or for one key, and of a server's three quarters for one key, so that what does not
 * answer leaves room for the others; who waits is let in by its order among those who may and whose key has the fewest, and no more than a bound of them wait.
 */
import { Counts } from '@penstock/async';
import { GitError } from './errors.ts';

export interface SlotWanted {
  readonly server: string;
  /** Whose it is; absent: nobody's in particular, which shares with nobody. */
  readonly key: string | undefined;
}

interface Waiting extends SlotWanted {
  readonly enter: () => void;
}

const OF_SERVER_SHARE = 3 / 4;

export class Slots {
  readonly #waitingMax: number;
  readonly #shareMax: number;
  #free: number;
  /** Those that are taken. */
  readonly #byServer = new Counts();
  readonly #byKey = new Counts();
  /** Of a key at a server. */
  readonly #byBoth = new Counts();
  readonly #waiting: Waiting[] = [];

  constructor(count: number, waitingMax: number) {
    this.#free = count;
    this.#shareMax = Math.ceil(count / 2);
    this.#waitingMax = waitingMax;
  }

  /** @throws GitError `unreachable` where too many wait already; the signal's reason */
  async with<T>(wanted: SlotWanted, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#take(wanted, signal);
    try {
      return await work();
    } finally {
      this.#giveBack(wanted);
    }
  }

  #giveBack(taken: SlotWanted): void {
    this.#count(taken, -1);
    const next = this.#next();
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    this.#count(next, 1);
    next.enter();
  }

  #next(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const waiting of this.#waiting) {
      if (!this.#mayEnter(waiting)) continue;
      if (next === undefined || this.#heldBy(waiting) < this.#heldBy(next)) next = waiting;
      if (this.#heldBy(next) === 0) break;
    }
    return next;
  }

  #mayEnter(wanted: SlotWanted): boolean {
    const ofServer = this.#byServer.of(wanted.server);
    const ofBoth = this.#byBoth.of(`${wanted.server} ${wanted.key}`);
    return (
      this.#free > 0 &&
      ofServer < this.#shareMax &&
      this.#heldBy(wanted) < this.#shareMax &&
      ofBoth < Math.ceil(this.#shareMax * OF_SERVER_SHARE)
    );
  }

  #heldBy({ key }: SlotWanted): number {
    return key === undefined ? 0 : this.#byKey.of(key);
  }

  #count({ server, key }: SlotWanted, more: 1 | -1): void {
    this.#free -= more;
    this.#byServer.add(server, more);
    if (key === undefined) return;
    this.#byKey.add(key, more);
    this.#byBoth.add(`${server} ${key}`, more);
  }

  async #take(wanted: SlotWanted, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#mayEnter(wanted)) {
      this.#count(wanted, 1);
      return;
    }
    if (this.#waiting.length >= this.#waitingMax)
      throw new GitError('unreachable', 'too many repositories wait to be fetched');
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        const at = this.#waiting.indexOf(waiting);
        if (at !== -1) this.#waiting.splice(at, 1);
        reject(signal?.reason);
      };
      const enter = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const waiting: Waiting = { ...wanted, enter };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(waiting);
    });
  }
}

/**
 * At most so many at once, and half as many for one server, so that one which does not answer leaves room for the others;
 * who waits is let in by its order among those who may, and no more than a bound of them wait.
 */
import { GitError } from './errors.ts';

export class Slots {
  readonly #waitingMax: number;
  readonly #perServerMax: number;
  #free: number;
  /** Those that are taken, by server. */
  readonly #taken = new Map<string, number>();
  readonly #waiting: { readonly server: string; readonly enter: () => void }[] = [];

  constructor(count: number, waitingMax: number) {
    this.#free = count;
    this.#perServerMax = Math.ceil(count / 2);
    this.#waitingMax = waitingMax;
  }

  /** @throws GitError `unreachable` where too many wait already; the signal's reason */
  async with<T>(server: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#take(server, signal);
    try {
      return await work();
    } finally {
      this.#giveBack(server);
    }
  }

  #giveBack(server: string): void {
    const left = (this.#taken.get(server) ?? 0) - 1;
    if (left > 0) this.#taken.set(server, left);
    else this.#taken.delete(server);
    this.#free += 1;
    const at = this.#waiting.findIndex((waiting) => this.#mayEnter(waiting.server));
    const [next] = at === -1 ? [] : this.#waiting.splice(at, 1);
    if (next === undefined) return;
    this.#enter(next.server);
    next.enter();
  }

  #mayEnter(server: string): boolean {
    return this.#free > 0 && (this.#taken.get(server) ?? 0) < this.#perServerMax;
  }

  #enter(server: string): void {
    this.#free -= 1;
    this.#taken.set(server, (this.#taken.get(server) ?? 0) + 1);
  }

  async #take(server: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#mayEnter(server)) {
      this.#enter(server);
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
      const waiting = { server, enter };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(waiting);
    });
  }
}

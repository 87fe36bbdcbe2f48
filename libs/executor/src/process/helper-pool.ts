/**
 * The helpers of an executor: which are idle, whose they are, and who waits for one.
 *
 * HELPERPOOL-1. A helper that has run a stage of a key never runs one of another.
 * HELPERPOOL-2. No helper is handed out that the guard, where there is one, has not confirmed to hold (P15).
 * HELPERPOOL-3. At most `idleMax` helpers idle; the one idle for longest is ended first. How many run is the caller's to bound.
 */
import { HelperFailed } from '../contract/errors.ts';
import type { Guard } from '../guard/guard.ts';
import { Helper } from './helper.ts';
import { isolationsToTry, type CoveredFolder, type Isolation } from './launch.ts';
import type { Leftovers } from './leftovers.ts';
import type { Scratch } from './scratch.ts';

export interface HelperPoolOptions {
  readonly scratch: Scratch;
  readonly guard: Guard | undefined;
  readonly leftovers: Leftovers | undefined;
  readonly covered: CoveredFolder | undefined;
  readonly idleMax: number;
  /** Helpers of no key yet that are kept ready, so that a new key need not wait for one to start. */
  readonly spareCount: number;
  readonly isolations?: readonly Isolation[] | undefined;
  readonly warn: (message: string) => void;
}

interface Waiting {
  readonly key: string;
  readonly resolve: (helper: Helper) => void;
  readonly reject: (error: Error) => void;
}

export class HelperPool {
  readonly #options: HelperPoolOptions;
  readonly #isolations: Isolation[];
  /** Whether a helper of the first isolation has ever come up; only before that the next one is tried. */
  #proven = false;
  readonly #all = new Set<Helper>();
  /** The longest idle first. */
  readonly #idle: Helper[] = [];
  readonly #keys = new Map<Helper, string>();
  readonly #waiting: Waiting[] = [];
  #starting = 0;
  #closed = false;

  constructor(options: HelperPoolOptions) {
    this.#options = options;
    this.#isolations = [...(options.isolations ?? isolationsToTry())];
  }

  get isolation(): Isolation {
    return this.#isolations[0] ?? 'group';
  }

  /** A helper at once where one idles. Rejects with HelperFailed or GuardGone. */
  acquire(key: string): Helper | Promise<Helper> {
    const idle = this.#takeIdle(key);
    if (idle !== null) return idle;
    if (this.#closed) return Promise.reject(new HelperFailed('the executor is closed'));
    return new Promise<Helper>((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#starting < this.#waiting.length) this.#startOne();
    });
  }

  release(helper: Helper): void {
    if (!helper.usable || this.#closed) {
      helper.kill();
      return;
    }
    const key = this.#keys.get(helper);
    const index = this.#waiting.findIndex((waiting) => key === undefined || waiting.key === key);
    const waiting = index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
    if (waiting !== undefined) {
      this.#keys.set(helper, waiting.key);
      waiting.resolve(helper);
      return;
    }
    this.#idle.push(helper);
    while (this.#idle.length > this.#options.idleMax) this.#idle.shift()?.kill();
  }

  /** Resolves when `count` helpers idle or none is starting any more. */
  async prewarm(count: number): Promise<void> {
    const wanted = Math.min(count, this.#options.idleMax);
    const started: Promise<void>[] = [];
    for (let have = this.#idle.length + this.#starting; have < wanted; have += 1) started.push(this.#startOne());
    await Promise.all(started);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(new HelperFailed('the executor is closed'));
    for (const helper of this.#all) helper.kill();
    await Promise.all([...this.#all].map((helper) => helper.gone));
  }

  #takeIdle(key: string): Helper | null {
    for (const wanted of [key, undefined]) {
      // The one that idled last has the warmest caches.
      const index = this.#idle.findLastIndex((helper) => helper.usable && this.#keys.get(helper) === wanted);
      const helper = index < 0 ? undefined : this.#idle.splice(index, 1)[0];
      if (helper === undefined) continue;
      this.#keys.set(helper, key);
      if (wanted === undefined) this.#keepSpares();
      return helper;
    }
    return null;
  }

  #keepSpares(): void {
    const spares =
      this.#idle.filter((helper) => !this.#keys.has(helper)).length + this.#starting - this.#waiting.length;
    // Not now: whoever takes a spare is about to start a stage.
    if (spares < this.#options.spareCount && !this.#closed) setImmediate(() => void this.#startOne());
  }

  async #startOne(): Promise<void> {
    if (this.#closed) return;
    this.#starting += 1;
    try {
      const helper = await this.#startProven();
      this.#starting -= 1;
      this.release(helper);
    } catch (error) {
      this.#starting -= 1;
      const surplus = this.#waiting.length - this.#starting;
      if (surplus > 0) this.#waiting.shift()?.reject(error instanceof Error ? error : new HelperFailed(String(error)));
    }
  }

  async #startProven(): Promise<Helper> {
    for (;;) {
      const isolation = this.isolation;
      const helper = new Helper(isolation, this.#options.scratch, this.#options.covered);
      this.#all.add(helper);
      void helper.gone.then(() => this.#forget(helper));
      try {
        await helper.ready;
        this.#options.leftovers?.add(helper.identities);
        await this.#options.guard?.hold(helper.identities);
        this.#prove();
        return helper;
      } catch (error) {
        helper.kill();
        if (!(error instanceof HelperFailed) || this.#closed) throw error;
        // Another start may have stepped down meanwhile.
        if (isolation !== this.isolation) continue;
        if (this.#proven || this.#isolations.length === 1) throw error;
        this.#isolations.shift();
        if (this.isolation === 'group') this.#warnOfGroups(error);
      }
    }
  }

  #prove(): void {
    this.#proven = true;
  }

  #warnOfGroups(cause: Error): void {
    this.#options.warn(
      'stages run in process groups only, since namespaces are not to be had here (they need Linux, util-linux and the right to create them): ' +
        `a daemon that a stage starts can outlive it, and stages see this machine's processes and the data folder. Cause: ${cause.message}`,
    );
  }

  #forget(helper: Helper): void {
    this.#all.delete(helper);
    this.#keys.delete(helper);
    const index = this.#idle.indexOf(helper);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#options.guard?.letGo(helper.identities);
    this.#options.leftovers?.remove(helper.identities);
  }
}

/**
 * The helpers of an executor: which are idle, whose they are, and who waits for one.
 *
 * HELPERPOOL-1. A helper that has run a stage of a key never runs one of another.
 * HELPERPOOL-2. No helper is handed out that the guard, where there is one, has not confirmed to hold (P15).
 * HELPERPOOL-3. At most `idleMax` helpers idle, and for longer than `restMsMax` no more than `idleLasting`; the one idle for longest
 *     is ended first. How many run is the caller's to bound.
 * HELPERPOOL-4. A helper stays with its run while there is room for another: what a run sees is mounted once, not for each of its
 *     stages. Without room the one that has rested longest changes over.
 * HELPERPOOL-5. The next way is tried only where the machine does not give the one before, never where it is busy or short of something
 *     at the moment; and only before a helper has come up, which `prewarm` waits for: the first start is tried a few times.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { HelperFailed } from '../contract/errors.ts';
import type { Guard } from '../guard/guard.ts';
import type { ControlGroups } from '../limits/control-groups.ts';
import type { StageLimits } from '../limits/stage-limits.ts';
import { Helper } from './helper.ts';
import type { Isolation, Launch } from './launch.ts';
import type { Leftovers } from './leftovers.ts';
import type { Scratch } from './scratch.ts';
import { isCurrent, type View } from './view.ts';

export interface HelperPoolOptions {
  readonly scratch: Scratch;
  readonly guard: Guard | undefined;
  readonly leftovers: Leftovers | undefined;
  /** How a helper is started, the best way first: the first that works is kept to. */
  readonly ways: readonly Way[];
  readonly idleMax: number;
  readonly idleLasting: number;
  readonly restMsMax: number;
  /** What bounds the stages of helpers, where the machine has control groups. */
  readonly groups: ControlGroups | null;
  /** Absent: stages take what they can get. */
  readonly limits: StageLimits | undefined;
  /** Helpers of no key yet that are kept ready, so that a new key need not wait for one to start. */
  readonly spareCount: number;
  readonly warn: (message: string) => void;
}

/** `place`: what the helper is for beyond its key; helpers of no key yet are of the place `''`. */
export interface Way {
  readonly isolation: Isolation;
  readonly launch: (place: string) => Launch | Promise<Launch>;
}

interface Wanted {
  readonly key: string;
  readonly place: string;
  readonly view: View;
}

interface Waiting extends Wanted {
  readonly resolve: (helper: Helper) => void;
  readonly reject: (error: Error) => void;
}

interface Resting {
  readonly helper: Helper;
  readonly place: string;
  /** Undefined: of no key yet. */
  readonly key: string | undefined;
  readonly since: number;
}

/** Of spares. */
const NO_PLACE = '';
const GROUP_TRIES_MAX = 3;
/** Before a start is tried again that failed for something passing while no helper has come up: a server that starts beside others ends without one. */
const FIRST_PAUSES_MS = [100, 500];
/** An empty group is nobody's (GROUPS-2): whoever begins meanwhile may take it away, also while its file is open (ENODEV). */
const TAKEN_AWAY: ReadonlySet<string> = new Set(['ENOENT', 'ENODEV']);

export class HelperPool {
  readonly #options: HelperPoolOptions;
  readonly #ways: Way[];
  /** Whether a helper of the first isolation has ever come up; only before that the next one is tried. */
  #proven = false;
  readonly #all = new Set<Helper>();
  /** The longest idle first. */
  readonly #idle: Resting[] = [];
  #sweep: NodeJS.Timeout | undefined;
  readonly #keys = new Map<Helper, string>();
  readonly #places = new Map<Helper, string>();
  readonly #waiting: Waiting[] = [];
  /** The place of each that is starting. */
  readonly #starting: string[] = [];
  #closed = false;

  constructor(options: HelperPoolOptions) {
    this.#options = options;
    this.#ways = [...options.ways];
  }

  get isolation(): Isolation {
    return this.#ways[0]?.isolation ?? 'group';
  }

  /** A helper at once where one idles. Rejects with HelperFailed or GuardGone. */
  acquire(wanted: Wanted): Helper | Promise<Helper> {
    const idle = this.#takeIdle(wanted);
    if (idle !== null) return idle;
    if (this.#closed) return Promise.reject(new HelperFailed('the executor is closed'));
    return new Promise<Helper>((resolve, reject) => {
      this.#waiting.push({ ...wanted, resolve, reject });
      if (this.#surplus(wanted.place) > 0) void this.#startOne(wanted.place);
    });
  }

  /** Null where none idles. */
  takeIdle(wanted: Wanted): Helper | null {
    return this.#closed ? null : this.#takeIdle(wanted);
  }

  /** How many more wait for a helper of this place than are starting. */
  #surplus(place: string): number {
    const of = (other: string): boolean => other === place;
    return this.#waiting.filter((waiting) => of(waiting.place)).length - this.#starting.filter(of).length;
  }

  release(helper: Helper): void {
    if (!helper.usable || this.#closed) {
      helper.kill();
      return;
    }
    const key = this.#keys.get(helper);
    const place = this.#places.get(helper) ?? NO_PLACE;
    const index = this.#waiting.findIndex(
      (waiting) => waiting.place === place && (key === undefined || waiting.key === key),
    );
    const waiting = index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
    if (waiting !== undefined) {
      this.#keys.set(helper, waiting.key);
      waiting.resolve(helper);
      return;
    }
    this.#idle.push({ helper, place, key, since: performance.now() });
    while (this.#idle.length > this.#options.idleMax) this.#idle.shift()?.helper.kill();
    if (this.#idle.length > this.#options.idleLasting) this.#sweepLater();
  }

  #sweepLater(): void {
    if (this.#sweep !== undefined || this.#closed) return;
    const { idleLasting, restMsMax } = this.#options;
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined;
      const restedFrom = performance.now() - restMsMax;
      const rested = this.#idle.filter(({ since }) => since <= restedFrom).length;
      const over = Math.max(0, Math.min(rested, this.#idle.length - idleLasting));
      for (const { helper } of this.#idle.splice(0, over)) helper.kill();
      if (this.#idle.length > idleLasting) this.#sweepLater();
    }, restMsMax);
    this.#sweep.unref();
  }

  /**
   * Resolves when `count` helpers idle or none is starting any more. Rejects where it is not known then in which of its ways stages will be
   * kept apart.
   */
  async prewarm(count: number): Promise<void> {
    const wanted = Math.min(count, this.#options.idleMax);
    const started: Promise<Error | null>[] = [];
    for (let have = this.#idle.length + this.#starting.length; have < wanted; have += 1)
      started.push(this.#startOne(NO_PLACE));
    const failure = (await Promise.all(started)).find((error) => error !== null);
    if (failure !== undefined && !this.#proven && this.#ways.length > 1 && !this.#closed) throw failure;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#sweep);
    for (const { reject } of this.#waiting.splice(0)) reject(new HelperFailed('the executor is closed'));
    for (const helper of this.#all) helper.kill();
    await Promise.all([...this.#all].map((helper) => helper.gone));
  }

  /** HELPERPOOL-4. Of several the one that idled last has the warmest caches. */
  #takeIdle(wanted: Wanted): Helper | null {
    const same = this.#takeSame(wanted);
    if (same !== null) return same;
    const { key, place } = wanted;
    const own: Resting[] = [];
    let spare: Resting | undefined;
    for (const each of this.#idle) {
      if (!each.helper.usable || each.place !== place) continue;
      if (each.key === key) own.push(each);
      else if (each.key === undefined) spare = each;
    }
    const hasRoom = this.#idle.length < this.#options.idleMax;
    const vacant = own.findLast(({ helper }) => helper.view === null || !isCurrent(helper.view));
    const taken = vacant ?? (hasRoom ? (spare ?? own[0]) : (own[0] ?? spare));
    if (taken === undefined) return null;
    this.#idle.splice(this.#idle.indexOf(taken), 1);
    // Also where one had to change over for want of a spare: the next run finds one.
    if (taken === spare || (taken !== vacant && hasRoom)) this.#keepSpares();
    this.#keys.set(taken.helper, key);
    return taken.helper;
  }

  /** One that shows the very folders: the usual case, and seldom far from the end. */
  #takeSame({ key, place, view }: Wanted): Helper | null {
    const index = this.#idle.findLastIndex(
      (each) =>
        each.key === key && each.place === place && each.helper.usable && each.helper.view?.identity === view.identity,
    );
    if (index < 0) return null;
    const [same] = this.#idle.splice(index, 1);
    return same?.helper ?? null;
  }

  #keepSpares(): void {
    const spares =
      this.#idle.filter(({ key }) => key === undefined).length + this.#starting.length - this.#waiting.length;
    // Not now: whoever takes a spare is about to start a stage.
    if (spares < this.#options.spareCount && !this.#closed) setImmediate(() => void this.#startOne(NO_PLACE));
  }

  /** Resolves with what it has failed by; whoever waits for it is told that, too. */
  async #startOne(place: string): Promise<Error | null> {
    if (this.#closed) return null;
    this.#starting.push(place);
    const started = (): void => void this.#starting.splice(this.#starting.indexOf(place), 1);
    try {
      const helper = await this.#startProven(place);
      started();
      this.release(helper);
      return null;
    } catch (error) {
      started();
      const failure = error instanceof Error ? error : new HelperFailed(String(error));
      if (this.#surplus(place) <= 0) return failure;
      const index = this.#waiting.findIndex((waiting) => waiting.place === place);
      const [waiting] = this.#waiting.splice(index, 1);
      waiting?.reject(failure);
      return failure;
    }
  }

  async #startProven(place: string): Promise<Helper> {
    const pausesMs = [...FIRST_PAUSES_MS];
    for (;;) {
      const [way] = this.#ways;
      if (way === undefined) throw new HelperFailed('there is no way to start a helper');
      const { isolation } = way;
      const helper = new Helper(await way.launch(place), this.#options.scratch);
      this.#places.set(helper, place);
      this.#all.add(helper);
      void helper.gone.then(() => this.#forget(helper));
      try {
        if (this.#closed) throw new HelperFailed('the executor is closed');
        await helper.ready;
        await this.#group(helper);
        this.#options.leftovers?.add(helper.identities);
        await this.#options.guard?.hold(helper.identities);
        this.#prove();
        return helper;
      } catch (error) {
        helper.kill();
        if (!(error instanceof HelperFailed) || this.#closed) throw error;
        // Another start may have stepped down meanwhile.
        if (isolation !== this.isolation) continue;
        const pauseMs = this.#proven || !error.isPassing ? undefined : pausesMs.shift();
        if (pauseMs !== undefined) {
          await pause(pauseMs);
          continue;
        }
        if (this.#proven || this.#ways.length === 1 || error.isPassing) throw error;
        this.#ways.shift();
        if (this.isolation === 'group') this.#warnOfGroups(error);
      }
    }
  }

  /** Before its first stage. A machine that is out of groups bounds its stages as one that has none. */
  async #group(helper: Helper): Promise<void> {
    const { groups, limits } = this.#options;
    const first = helper.identities.at(-1);
    if (groups === null || limits === undefined || first === undefined || helper.isolation === 'group') return;
    for (let tries = 1; ; tries += 1) {
      try {
        helper.group = groups.make(limits);
        return await helper.group.add(first.pid);
      } catch (error) {
        helper.group?.remove();
        helper.group = null;
        const { code = '' } = error as NodeJS.ErrnoException;
        if (tries < GROUP_TRIES_MAX && TAKEN_AWAY.has(code)) continue;
        return this.#options.warn(`no control group could be made for a stage: ${String(error)}`);
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
    helper.group?.remove();
    this.#all.delete(helper);
    this.#keys.delete(helper);
    this.#places.delete(helper);
    const index = this.#idle.findIndex((each) => each.helper === helper);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#options.guard?.letGo(helper.identities);
    this.#options.leftovers?.remove(helper.identities);
  }
}

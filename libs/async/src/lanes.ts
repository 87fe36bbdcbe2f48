/**
 * Work in lanes: the lanes take turns, so that one with thousands in it delays the others by one piece each; within a
 * lane one piece at a time, in order. It owns whose turn it is and what is under way; what a lane holds others know.
 *
 * LANE-1 At most `concurrency` pieces are under way, and half as many of those lanes that wait for the same host, or have the same owner; of a
 *     host's, three quarters have the same owner. So nobody has all places of the host that everybody's repositories are at.
 * LANE-2 A piece that fails is done again, after a pause that doubles up to a bound, before the next one of its lane; its
 *     pause takes nobody's place. What has failed for long is tried ever less often, until something more comes in its lane.
 * LANE-3 Where fewer may be under way now, what has been under way for seconds is not counted: it waits for a host, mostly, which may
 *     never answer, and takes little of what others want.
 * LANE-4 The next is a lane of who has the fewest under way, and among those the one that has waited longest. So an owner with thousands
 *     of lanes, at as many hosts that do not answer, keeps nobody else from a place that is free.
 */
import { backoffMs } from './backoff.ts';
import { bootMs } from './boot-clock.ts';

export interface LanesOptions {
  readonly concurrency: number;
  /** Asked before a piece is begun: how many may be under way now (LANE-3), at least 1. Default `concurrency`. */
  readonly concurrencyNow?: (() => number) | undefined;
  /** Does the next piece of a lane. Answers false where there was none. */
  work(lane: string): Promise<boolean>;
  /** `attempt` counts from 1, `forMs` from the first of them. */
  failed(lane: string, error: unknown, attempt: number, forMs: number): void;
  /** Milliseconds that only go forward; default the boot clock. */
  readonly now?: (() => number) | undefined;
}

/** With whom a lane shares places. */
export interface Sharing {
  readonly host: string;
  /** '' shares with nobody. */
  readonly owner: string;
}

/** What is under way of lanes that share something: counted in one place for all of them, since thousands of lanes are asked whether they may begin. */
interface Tally {
  readonly name: string;
  /** That have a piece to do, or had one a moment ago. */
  lanes: number;
  underWay: number;
}

interface Lane {
  readonly name: string;
  readonly ofHost: Tally;
  /** Undefined: it shares with nobody. */
  readonly ofOwner: Tally | undefined;
  /** Of the owner at the host. */
  readonly ofBoth: Tally | undefined;
  attempt: number;
  /** Of the first of these attempts. */
  failingFrom: number;
  /** Something came while a piece was under way. */
  again: boolean;
  /** Until its piece is tried again. */
  pause: { readonly timer: NodeJS.Timeout; readonly endsAt: number } | undefined;
}

const RETRY = { firstMs: 200, maxMs: 5_000 };
/** LANE-2: of the time for which it has failed. Where all of that is over, a piece waits for no more than so much of it. */
const LONG_SHARE = 1 / 10;
const LONG_MS_MAX = 5 * 60_000;
const SLOW_MS = 5_000;
/** LANE-1 */
const OF_HOST_SHARE = 3 / 4;

export class Lanes {
  readonly #options: LanesOptions;
  readonly #now: () => number;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes with something to do, none of it under way; the first has waited longest. */
  readonly #turns: Lane[] = [];
  readonly #stopped = new AbortController();
  #underWay = 0;
  /** Of those, LANE-3. */
  #slow = 0;
  readonly #tallies = new Map<string, Tally>();
  #idle: (() => void)[] = [];

  constructor(options: LanesOptions) {
    this.#options = options;
    this.#now = options.now ?? bootMs;
  }

  /** There is something to do in a lane, or something more. */
  add(name: string, { host, owner }: Sharing): void {
    if (this.#stopped.signal.aborted || this.goOn(name)) return;
    const lane: Lane = {
      name,
      ofHost: this.#tally('host', host),
      ofOwner: owner === '' ? undefined : this.#tally('owner', owner),
      ofBoth: owner === '' ? undefined : this.#tally('both', host, owner),
      attempt: 1,
      failingFrom: 0,
      again: false,
      pause: undefined,
    };
    this.#lanes.set(name, lane);
    this.#turns.push(lane);
    this.#next();
  }

  /** There is something more in a lane that had something. False: it had not. */
  goOn(name: string): boolean {
    const known = this.#lanes.get(name);
    if (known === undefined) return false;
    known.again = true;
    // Somebody waits for it, who may have mended what it fails of.
    if (known.pause !== undefined && known.pause.endsAt - this.#now() > RETRY.maxMs)
      this.#againIn(known, backoffMs(1, { firstMs: RETRY.maxMs, maxMs: RETRY.maxMs }));
    return true;
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const { pause } of this.#lanes.values()) clearTimeout(pause?.timer);
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #next(): void {
    while (this.#hasPlace() && !this.#stopped.signal.aborted) {
      const at = this.#nextTurn();
      const [lane] = at === -1 ? [] : this.#turns.splice(at, 1);
      if (lane === undefined) return;
      this.#underWay += 1;
      this.#count(lane, 1);
      void this.#work(lane);
    }
  }

  /** LANE-1, LANE-4. Its place among those that wait; -1: none may begin. */
  #nextTurn(): number {
    const shareMax = Math.ceil(this.#options.concurrency / 2);
    const bothMax = Math.ceil(shareMax * OF_HOST_SHARE);
    let next = -1;
    let fewest = shareMax;
    for (let at = 0; at < this.#turns.length && fewest > 0; at += 1) {
      const { ofHost, ofOwner, ofBoth } = this.#turns[at] as Lane;
      const its = ofOwner?.underWay ?? 0;
      if (its >= fewest || ofHost.underWay >= shareMax || (ofBoth?.underWay ?? 0) >= bothMax) continue;
      next = at;
      fewest = its;
    }
    return next;
  }

  #tally(...names: readonly string[]): Tally {
    const name = names.join(' ');
    const tally = this.#tallies.get(name) ?? { name, lanes: 0, underWay: 0 };
    tally.lanes += 1;
    this.#tallies.set(name, tally);
    return tally;
  }

  #count(lane: Lane, more: 1 | -1): void {
    for (const tally of talliesOf(lane)) tally.underWay += more;
  }

  #forget(lane: Lane): void {
    this.#lanes.delete(lane.name);
    for (const tally of talliesOf(lane)) {
      tally.lanes -= 1;
      if (tally.lanes === 0) this.#tallies.delete(tally.name);
    }
  }

  #hasPlace(): boolean {
    const { concurrency, concurrencyNow = () => concurrency } = this.#options;
    return this.#underWay < concurrency && this.#underWay - this.#slow < concurrencyNow();
  }

  async #work(lane: Lane): Promise<void> {
    lane.again = false;
    let slow = 0;
    const untilSlow = setTimeout(() => {
      slow = 1;
      this.#slow += 1;
      this.#next();
    }, SLOW_MS).unref();
    let failure: { readonly error: unknown } | undefined;
    let more = false;
    try {
      more = await this.#options.work(lane.name);
    } catch (error) {
      failure = { error };
    }
    clearTimeout(untilSlow);
    this.#slow -= slow;
    this.#underWay -= 1;
    this.#count(lane, -1);
    if (failure === undefined) {
      lane.attempt = 1;
      if (more || lane.again) this.#turns.push(lane);
      else this.#forget(lane);
    } else if (!this.#stopped.signal.aborted) {
      this.#failed(lane, failure.error);
    }
    this.#next();
    if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #failed(lane: Lane, error: unknown): void {
    if (lane.attempt === 1) lane.failingFrom = this.#now();
    const forMs = this.#now() - lane.failingFrom;
    this.#options.failed(lane.name, error, lane.attempt, forMs);
    const longMs = Math.min(LONG_MS_MAX, forMs * LONG_SHARE);
    this.#againIn(lane, backoffMs(lane.attempt, { ...RETRY, maxMs: Math.max(RETRY.maxMs, longMs) }));
    lane.attempt += 1;
  }

  #againIn(lane: Lane, waitMs: number): void {
    if (this.#stopped.signal.aborted) return;
    clearTimeout(lane.pause?.timer);
    const again = (): void => {
      lane.pause = undefined;
      this.#turns.push(lane);
      this.#next();
    };
    lane.pause = { timer: setTimeout(again, waitMs), endsAt: this.#now() + waitMs };
  }
}

function talliesOf({ ofHost, ofOwner, ofBoth }: Lane): readonly Tally[] {
  return ofOwner === undefined || ofBoth === undefined ? [ofHost] : [ofHost, ofOwner, ofBoth];
}

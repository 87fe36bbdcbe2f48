/**
 * Work in lanes: the lanes take turns, so that one with thousands in it delays the others by one piece each; within a
 * lane one piece at a time, in order. It owns whose turn it is and what is under way; what a lane holds others know.
 *
 * LANE-1 At most `concurrency` pieces are under way, and half as many of those lanes that wait for the same host, or have the same owner.
 * LANE-2 A piece that fails is done again, after a pause that doubles up to a bound, before the next one of its lane; its
 *     pause takes nobody's place.
 * LANE-3 Where fewer may be under way now, what has been under way for seconds is not counted: it waits for a host, mostly, which may
 *     never answer, and takes little of what others want.
 * LANE-4 The next is a lane of who has the fewest under way, and among those the one that has waited longest. So an owner with thousands
 *     of lanes, at as many hosts that do not answer, keeps nobody else from a place that is free.
 */
import { backoffMs, pauseOrAbort } from '@penstock/async';

export interface LanesOptions {
  readonly concurrency: number;
  /** Asked before a piece is begun: how many may be under way now (LANE-3), at least 1. Default `concurrency`. */
  readonly concurrencyNow?: (() => number) | undefined;
  /** Does the next piece of a lane. Answers false where there was none. */
  work(lane: string): Promise<boolean>;
  /** `attempt` counts from 1. */
  failed(lane: string, error: unknown, attempt: number): void;
}

/** With whom a lane shares places. */
export interface Sharing {
  readonly host: string;
  /** '' shares with nobody. */
  readonly owner: string;
}

interface Lane extends Sharing {
  readonly name: string;
  attempt: number;
  /** Something came while a piece was under way. */
  again: boolean;
}

const RETRY = { firstMs: 200, maxMs: 5_000 };
const SLOW_MS = 5_000;

export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes with something to do, none of it under way; the first has waited longest. */
  readonly #turns: Lane[] = [];
  readonly #stopped = new AbortController();
  #underWay = 0;
  /** Of those, LANE-3. */
  #slow = 0;
  /** Lanes with a piece under way. */
  readonly #byHost = new Map<string, number>();
  readonly #byOwner = new Map<string, number>();
  #idle: (() => void)[] = [];

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  /** There is something to do in a lane, or something more. */
  add(name: string, { host, owner }: Sharing): void {
    if (this.#stopped.signal.aborted || this.goOn(name)) return;
    const lane: Lane = { name, host, owner, attempt: 1, again: false };
    this.#lanes.set(name, lane);
    this.#turns.push(lane);
    this.#next();
  }

  /** There is something more in a lane that had something. False: it had not. */
  goOn(name: string): boolean {
    const known = this.#lanes.get(name);
    if (known !== undefined) known.again = true;
    return known !== undefined;
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #next(): void {
    while (this.#hasPlace() && !this.#stopped.signal.aborted) {
      const at = this.#nextTurn();
      const [lane] = at === -1 ? [] : this.#turns.splice(at, 1);
      if (lane === undefined) return;
      this.#underWay += 1;
      count(this.#byHost, lane.host, 1);
      if (lane.owner !== '') count(this.#byOwner, lane.owner, 1);
      void this.#work(lane);
    }
  }

  /** LANE-1, LANE-4. Its place among those that wait; -1: none may begin. */
  #nextTurn(): number {
    const shareMax = Math.ceil(this.#options.concurrency / 2);
    let next = -1;
    let fewest = shareMax;
    for (const [at, { host, owner }] of this.#turns.entries()) {
      const its = this.#byOwner.get(owner) ?? 0;
      if (its >= fewest || (this.#byHost.get(host) ?? 0) >= shareMax) continue;
      next = at;
      fewest = its;
      if (its === 0) break;
    }
    return next;
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
    count(this.#byHost, lane.host, -1);
    if (lane.owner !== '') count(this.#byOwner, lane.owner, -1);
    if (failure === undefined) {
      lane.attempt = 1;
      if (more || lane.again) this.#turns.push(lane);
      else this.#lanes.delete(lane.name);
    } else if (!this.#stopped.signal.aborted) {
      this.#options.failed(lane.name, failure.error, lane.attempt);
      void this.#againLater(lane);
    }
    this.#next();
    if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #againLater(lane: Lane): Promise<void> {
    const waitMs = backoffMs(lane.attempt, RETRY);
    lane.attempt += 1;
    await pauseOrAbort(waitMs, this.#stopped.signal);
    this.#turns.push(lane);
    this.#next();
  }
}

function count(counts: Map<string, number>, name: string, more: number): void {
  const sum = (counts.get(name) ?? 0) + more;
  if (sum > 0) counts.set(name, sum);
  else counts.delete(name);
}

/**
 * Work in lanes: the lanes take turns, so that one with thousands in it delays the others by one piece each; within a
 * lane one piece at a time, in order. It owns what waits and what is under way.
 *
 * LANE-1 At most `concurrency` pieces are under way, and half as many of one group of lanes: those that wait for the same host.
 * LANE-2 A piece that fails is done again, after a pause that doubles up to a bound, before the next one of its lane; its
 *     pause takes nobody's place.
 */
import { backoffMs, pauseOrAbort } from '@penstock/async';

export interface LanesOptions<T> {
  readonly concurrency: number;
  /** Of a lane's name. */
  groupOf(name: string): string;
  work(piece: T): Promise<void>;
  /** `attempt` counts from 1. */
  failed(piece: T, error: unknown, attempt: number): void;
}

interface Lane<T> {
  readonly name: string;
  readonly group: string;
  readonly pieces: T[];
  attempt: number;
}

const RETRY = { firstMs: 200, maxMs: 5_000 };

export class Lanes<T> {
  readonly #options: LanesOptions<T>;
  readonly #lanes = new Map<string, Lane<T>>();
  /** Lanes with something to do, none of it under way; the first has waited longest. */
  readonly #turns: Lane<T>[] = [];
  readonly #stopped = new AbortController();
  #underWay = 0;
  /** Lanes with a piece under way, by group. */
  readonly #busy = new Map<string, number>();
  #idle: (() => void)[] = [];

  constructor(options: LanesOptions<T>) {
    this.#options = options;
  }

  /** Counts what waits in a lane, what is under way included. */
  waitingIn(lane: string): number {
    return this.#lanes.get(lane)?.pieces.length ?? 0;
  }

  add(name: string, piece: T): void {
    if (this.#stopped.signal.aborted) return;
    const known = this.#lanes.get(name);
    if (known !== undefined) {
      known.pieces.push(piece);
      return;
    }
    const lane: Lane<T> = { name, group: this.#options.groupOf(name), pieces: [piece], attempt: 1 };
    this.#lanes.set(name, lane);
    this.#turns.push(lane);
    this.#next();
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #next(): void {
    while (this.#underWay < this.#options.concurrency && !this.#stopped.signal.aborted) {
      const at = this.#turns.findIndex(
        ({ group }) => (this.#busy.get(group) ?? 0) < Math.ceil(this.#options.concurrency / 2),
      );
      const [lane] = at === -1 ? [] : this.#turns.splice(at, 1);
      if (lane === undefined) return;
      this.#underWay += 1;
      this.#busy.set(lane.group, (this.#busy.get(lane.group) ?? 0) + 1);
      void this.#work(lane);
    }
  }

  async #work(lane: Lane<T>): Promise<void> {
    const piece = lane.pieces[0] as T;
    let failure: { readonly error: unknown } | undefined;
    try {
      await this.#options.work(piece);
    } catch (error) {
      failure = { error };
    }
    this.#underWay -= 1;
    const busy = (this.#busy.get(lane.group) ?? 0) - 1;
    if (busy > 0) this.#busy.set(lane.group, busy);
    else this.#busy.delete(lane.group);
    if (failure === undefined) {
      lane.pieces.shift();
      lane.attempt = 1;
      this.#again(lane);
    } else if (!this.#stopped.signal.aborted) {
      this.#options.failed(piece, failure.error, lane.attempt);
      void this.#againLater(lane);
    }
    this.#next();
    if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #again(lane: Lane<T>): void {
    if (lane.pieces.length > 0) this.#turns.push(lane);
    else this.#lanes.delete(lane.name);
  }

  async #againLater(lane: Lane<T>): Promise<void> {
    const waitMs = backoffMs(lane.attempt, RETRY);
    lane.attempt += 1;
    await pauseOrAbort(waitMs, this.#stopped.signal);
    this.#again(lane);
    this.#next();
  }
}

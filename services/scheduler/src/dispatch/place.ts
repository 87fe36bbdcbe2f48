/**
 * Where a run's stages stand among all that wait for the same runners: the very order in which the dispatch would pick (priority,
 * turns of keys, first come first served) is gone through ahead of time, as if nothing more came. Changes nothing.
 *
 *  PLACE-1 So many picks and lanes are looked at for one order at most; what stands behind them has no place that is told.
 */
import { Heap } from '../run/heap.ts';
import type { ExpectedLine } from '../run/expected-line.ts';
import type { Pool } from './key-slots.ts';
import type { Lane } from './lane.ts';
import type { ReadyClass } from './ready-class.ts';
import type { ReadyStages } from './ready-stage.ts';
import type { Session } from './sessions.ts';

/** A few milliseconds. */
const PICKS_MAX = 10_000;
const LANES_MAX = 10_000;

export interface Queues {
  readonly classes: ReadonlyMap<string, ReadyClass>;
  readonly sessions: { values(): Iterable<Session> };
  passOf(key: string): number;
  /** The pass of the key that was picked last. */
  virtualTime(): number;
  weightOf(key: string): number;
  isFull(ready: ReadyClass, lane: Lane): boolean;
  isPaused(ready: ReadyClass, lane: Lane): boolean;
  /** Of the runners that are everybody's, with the tenant's own where one is named. */
  poolOf(ready: ReadyClass, tenant?: string): Pool;
  /** Whether the tenant has runners of its own. */
  hasOwnRunners(tenant: string | undefined): boolean;
}

/** What stages with the same needs stand under. */
export function classId({ labelSet }: Pick<ReadyStages, 'labelSet'>, runner: string | undefined): string {
  return `${labelSet}\n${runner ?? ''}`;
}

export interface Place {
  /** From 1. */
  readonly position: number;
  /** Its key has all the slots that it may have while others wait. */
  readonly isFull: boolean;
  /** Until it may begin; undefined: not known. */
  readonly etaMs: number | undefined;
}

export interface Expected {
  readonly line: ExpectedLine;
  /** Of a stage of a run; undefined: not known. */
  lengthOf(run: object | undefined, stage: string): number | undefined;
  /** Until so many stages of the key have been granted, at its pace of late; undefined: not known. */
  pacedMs(key: string, grants: number): number | undefined;
  /** Of a stage whose own length is not known. */
  readonly usualMs: number | undefined;
}

/** What may still be looked at for one answer, by all that looks. */
export interface Looks {
  left: number;
}

/**
 * The order of all that wait for the runners of one pool. It is gone through once for all who ask about the same, and no further than they
 * have to know.
 */
export class PickOrder {
  readonly #picks: Picks | undefined;
  readonly #expected: Expected;
  readonly #looks: Looks;
  /** By run and stage, of what was picked so far. */
  readonly #places = new Map<object, Map<string, Place>>();
  readonly #ofKey = new Map<string, number>();
  #position = 0;
  #picked = 0;

  /** `tenant`: one with runners of its own, where the pool is of its stages. */
  constructor(queues: Queues, pool: Pool, tenant: string | undefined, expected: Expected, looks: Looks) {
    const picks = new Picks(queues);
    // PLACE-1
    this.#picks = picks.enter(pool, tenant, looks) ? picks : undefined;
    this.#expected = expected;
    this.#looks = looks;
  }

  /** By stage; `stages`: how many of the run wait. One that is not found is too far behind, or stands in no queue of the pool. */
  placesOf(run: object, stages: number): ReadonlyMap<string, Place> {
    while ((this.#places.get(run)?.size ?? 0) < stages && this.#pick());
    return this.#places.get(run) ?? NO_PLACES;
  }

  /** False: there is nothing more, or it is too far behind. */
  #pick(): boolean {
    const picked = this.#picked < PICKS_MAX && this.#looks.left > 0 ? this.#picks?.next() : undefined;
    if (picked === undefined) return false;
    this.#picked += 1;
    this.#looks.left -= 1;
    const { rival, value } = picked;
    // It waits no more: it is passed over when it is met.
    if (value === undefined || value === 'over') this.#picks?.refund(rival);
    else this.#place(rival, value);
    return true;
  }

  #place({ lane: { key }, isFull }: Rival, { run, stage }: WaitingStage): void {
    const { line, lengthOf, pacedMs, usualMs } = this.#expected;
    const ofKey = (this.#ofKey.get(key) ?? 0) + 1;
    this.#ofKey.set(key, ofKey);
    this.#position += 1;
    // Keys that come later go before what is far behind in its own key's line: the pace of late knows of them.
    const etaMs = line.nextMs === undefined ? undefined : Math.max(line.nextMs, pacedMs(key, ofKey) ?? 0);
    if (run !== undefined) {
      const places = this.#places.get(run) ?? new Map<string, Place>();
      this.#places.set(run, places.set(stage, { position: this.#position, isFull, etaMs }));
    }
    line.push(lengthOf(run, stage) ?? usualMs);
  }
}

const NO_PLACES: ReadonlyMap<string, Place> = new Map();

interface WaitingStage {
  readonly run: object | undefined;
  readonly stage: string;
  readonly since: number;
}

function* waitingIn(lane: Lane): Generator<WaitingStage | 'over', undefined> {
  for (const { stages, from } of lane.waiting())
    for (let index = from; index < stages.count; index++)
      yield stages.waits(index)
        ? { run: stages.run, stage: stages.nameAt?.(index) ?? '', since: stages.since(index) ?? 0 }
        : 'over';
}

interface Rival {
  readonly lane: Lane;
  /** Full lanes go after all others. */
  readonly isFull: boolean;
  readonly isBound: boolean;
  /** Of those in turn at once, that have waited for as long. */
  readonly order: number;
  readonly waiting: ReturnType<typeof waitingIn>;
  /** The first of `waiting`. */
  first: WaitingStage | 'over' | undefined;
  left: number;
}

/** The lanes of one key: a pick of any of them moves all of them on. */
interface Turn {
  readonly key: string;
  readonly rivals: Heap<Rival>;
  pass: number;
}

/** Turns as `KeyTurns` gives them, on a copy. */
class Picks {
  readonly #queues: Queues;
  readonly #turns = new Map<string, Turn>();
  readonly #heap = new Heap<Turn>(isNext);
  /** It was picked from last, and is not in the heap. */
  #out: Turn | undefined;
  readonly #passes = new Map<string, number>();
  readonly #before = new Map<string, { readonly pass: number; readonly virtualTime: number }>();
  #virtualTime: number;
  #lanes = 0;

  constructor(queues: Queues) {
    this.#queues = queues;
    this.#virtualTime = queues.virtualTime();
  }

  /** All lanes that have something for a runner of the pool. False: there are too many. */
  enter(pool: Pool, tenant: string | undefined, looks: Looks): boolean {
    let left = LANES_MAX;
    const isOneTooMany = (): boolean => {
      looks.left -= 1;
      return (left -= 1) < 0 || looks.left < 0;
    };
    for (const ready of this.#queues.classes.values()) {
      if (isOneTooMany()) return false;
      const others = isRival(this.#queues, ready, pool, undefined);
      // What is another tenant's goes to none of its own runners.
      const own = tenant === undefined ? others : isRival(this.#queues, ready, pool, tenant);
      if (!own && !others) continue;
      for (const lane of ready.lanes.values()) {
        if (isOneTooMany()) return false;
        if (!(lane.tenant === tenant ? own : others) || lane.count === 0) continue;
        if (!this.#queues.isPaused(ready, lane)) this.#enter(ready, lane);
      }
    }
    for (const turn of this.#turns.values()) this.#heap.push(turn);
    return true;
  }

  #enter(ready: ReadyClass, lane: Lane): void {
    const { key, pass, count } = lane;
    const turn = this.#turns.get(key) ?? { key, rivals: new Heap<Rival>(goesBefore), pass: this.#passOf(key) };
    this.#turns.set(key, turn);
    turn.pass = Math.max(turn.pass, pass);
    const waiting = waitingIn(lane);
    turn.rivals.push({
      lane,
      isFull: this.#queues.isFull(ready, lane),
      isBound: ready.runner !== undefined,
      order: (this.#lanes += 1),
      waiting,
      first: waiting.next().value,
      left: count,
    });
  }

  /** What is picked from next. */
  next(): { readonly rival: Rival; readonly value: Rival['first'] } | undefined {
    this.#putBack();
    const turn = this.#heap.pop();
    const rival = turn?.rivals.pop();
    if (turn === undefined || rival === undefined) return undefined;
    this.#out = turn;
    this.#charge(turn.key);
    const value = rival.first;
    rival.first = rival.waiting.next().value;
    rival.left -= 1;
    if (rival.left > 0) turn.rivals.push(rival);
    return { rival, value };
  }

  #putBack(): void {
    const turn = this.#out;
    this.#out = undefined;
    if (turn === undefined || turn.rivals.size === 0) return;
    turn.pass = this.#passOf(turn.key);
    this.#heap.push(turn);
  }

  /** What was picked last, from this lane, takes no slot. */
  refund({ lane: { key } }: Rival): void {
    const before = this.#before.get(key);
    if (before === undefined) return;
    this.#passes.set(key, before.pass);
    this.#virtualTime = before.virtualTime;
  }

  #passOf(key: string): number {
    return this.#passes.get(key) ?? this.#queues.passOf(key);
  }

  #charge(key: string): void {
    const pass = Math.max(this.#passOf(key), this.#virtualTime);
    this.#before.set(key, { pass: this.#passOf(key), virtualTime: this.#virtualTime });
    this.#virtualTime = pass;
    this.#passes.set(key, pass + 1 / this.#queues.weightOf(key));
  }
}

function isNext(a: Turn, b: Turn): boolean {
  const [first, other] = [a.rivals.peek(), b.rivals.peek()];
  if (first === undefined || other === undefined) return first !== undefined;
  return goesBefore(first, other, a.pass - b.pass);
}

/** `passes`: by how much the turn of the one is behind that of the other. */
function goesBefore(a: Rival, b: Rival, passes = 0): boolean {
  if (a.isFull !== b.isFull) return b.isFull;
  if (a.lane.priority !== b.lane.priority) return a.lane.priority > b.lane.priority;
  if (passes !== 0) return passes < 0;
  if (a.isBound !== b.isBound) return a.isBound;
  const [sinceA, sinceB] = [sinceOf(a), sinceOf(b)];
  return sinceA === sinceB ? a.order < b.order : sinceA < sinceB;
}

/** What waits no more is passed over at once. */
function sinceOf({ first }: Rival): number {
  return first === undefined || first === 'over' ? -Infinity : first.since;
}

/** Whether some runner of the pool takes what the tenant has in this class; undefined: somebody with no runner of one's own. */
function isRival(queues: Queues, ready: ReadyClass, pool: Pool, tenant: string | undefined): boolean {
  if (ready.runner !== undefined) return pool.runners.has(ready.runner);
  return !queues.poolOf(ready, tenant).runners.isDisjointFrom(pool.runners);
}

/**
 * Where a run's stages stand among all that wait for the same runners: the very order in which the dispatch would pick (priority,
 * turns of keys, first come first served) is gone through ahead of time, as if nothing more came. Changes nothing.
 *
 *  PLACE-1 So many picks and lanes are looked at for one answer at most; what stands behind them has no place that is told.
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
  pacedMs(grants: number): number | undefined;
  /** Of a stage whose own length is not known. */
  readonly usualMs: number | undefined;
}

/** By stage, of those of the run that stand in this lane; a stage that is not found is too far behind, or stands there no more. */
export function placesIn(
  queues: Queues,
  { ready, lane, run, stages }: OwnLane,
  { line, lengthOf, pacedMs, usualMs }: Expected,
): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  const picks = new Picks(queues);
  if (!picks.enter(ready, lane)) return places;
  const isFull = queues.isFull(ready, lane);
  let [position, ofKey] = [0, 0];
  for (let looked = 0; looked < PICKS_MAX && places.size < stages; looked++) {
    const picked = picks.next();
    if (picked === undefined) return places;
    const { rival, value } = picked;
    // It waits no more: it is passed over when it is met.
    if (value === undefined || value === 'over') {
      picks.refund(rival);
      continue;
    }
    position += 1;
    if (rival.lane.key === lane.key) ofKey += 1;
    // Keys that come later go before what is far behind in its own key's line: the pace of late knows of them.
    const etaMs = line.nextMs === undefined ? undefined : Math.max(line.nextMs, pacedMs(ofKey) ?? 0);
    if (value.run === run) places.set(value.stage, { position, isFull, etaMs });
    line.push(lengthOf(value.run, value.stage) ?? usualMs);
  }
  return places;
}

export interface OwnLane {
  readonly ready: ReadyClass;
  readonly lane: Lane;
  readonly run: object;
  /** How many stages of the run stand there at most. */
  readonly stages: number;
}

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
  pass: number;
  left: number;
}

/** Turns as `KeyTurns` gives them, on a copy. */
class Picks {
  readonly #queues: Queues;
  readonly #heap = new Heap<Rival>(goesBefore);
  readonly #passes = new Map<string, number>();
  readonly #before = new Map<string, { readonly pass: number; readonly virtualTime: number }>();
  #virtualTime: number;

  constructor(queues: Queues) {
    this.#queues = queues;
    this.#virtualTime = queues.virtualTime();
  }

  /** The lane with all those that compete with it. False: there are too many. */
  enter(ready: ReadyClass, lane: Lane): boolean {
    const { tenant } = lane;
    const pool = this.#queues.poolOf(ready, tenant);
    let looks = LANES_MAX;
    for (const other of this.#queues.classes.values()) {
      if ((looks -= 1) < 0) return false;
      // What is another tenant's goes to none of its own runners.
      const [own, others] = [tenant, undefined].map((whose) => isRival(this.#queues, other, pool, whose));
      if (other !== ready && own !== true && others !== true) continue;
      for (const each of other.lanes.values()) {
        if ((looks -= 1) < 0) return false;
        if (each !== lane && (each.tenant === tenant ? own : others) !== true) continue;
        if ((each.count === 0 || this.#queues.isPaused(other, each)) && each !== lane) continue;
        const waiting = waitingIn(each);
        const pass = Math.max(each.pass, this.#queues.passOf(each.key));
        this.#heap.push({
          lane: each,
          isFull: this.#queues.isFull(other, each),
          isBound: other.runner !== undefined,
          order: this.#heap.size,
          waiting,
          first: waiting.next().value,
          pass,
          left: each.count,
        });
      }
    }
    return true;
  }

  /** What is picked from next. */
  next(): { readonly rival: Rival; readonly value: Rival['first'] } | undefined {
    for (let first = this.#heap.pop(); first !== undefined; first = this.#heap.pop()) {
      const { lane } = first;
      const pass = this.#passOf(lane.key);
      if (pass > first.pass) {
        first.pass = pass;
        this.#heap.push(first);
        continue;
      }
      this.#charge(lane.key);
      const value = first.first;
      first.first = first.waiting.next().value;
      first.left -= 1;
      if (first.left > 0) this.#heap.push(first);
      return { rival: first, value };
    }
    return undefined;
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

function goesBefore(a: Rival, b: Rival): boolean {
  if (a.isFull !== b.isFull) return b.isFull;
  if (a.lane.priority !== b.lane.priority) return a.lane.priority > b.lane.priority;
  if (a.pass !== b.pass) return a.pass < b.pass;
  if (a.isBound !== b.isBound) return a.isBound;
  const [sinceA, sinceB] = [sinceOf(a), sinceOf(b)];
  return sinceA === sinceB ? a.order < b.order : sinceA < sinceB;
}

/** What waits no more is passed over at once. */
function sinceOf({ first }: Rival): number {
  return first === undefined || first === 'over' ? -Infinity : first.since;
}

/** Whether some runner of the pool takes what the tenant has in this class too; undefined: somebody with no runner of one's own. */
function isRival(queues: Queues, other: ReadyClass, pool: Pool, tenant: string | undefined): boolean {
  if (other.runner !== undefined) return pool.runners.has(other.runner);
  const { runners } = queues.poolOf(other, tenant);
  const [few, many] = runners.size < pool.runners.size ? [runners, pool.runners] : [pool.runners, runners];
  for (const runner of few) if (many.has(runner)) return true;
  return false;
}

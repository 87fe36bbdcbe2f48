/**
 * The look for queues that are of no use any more. What waits is over without the dispatch being told, so all queues are looked at in turn, some
 * at a time; it owns where that look stands. Until it comes to them, stages that are over count as waiting.
 *
 *  IDLEWALK-1 So few are looked at in a call that it takes a millisecond or two; of very many, a WALK_CALLS-th of all, lanes and classes.
 */
import type { Lane } from './lane.ts';
import type { ReadyClass } from './ready-class.ts';

/** A lane, or a class all of whose lanes have been looked at. */
interface Looked {
  readonly ready: ReadyClass;
  readonly lane?: Lane;
}

/** More keys than that do not come in a second. */
const LOOKS_MIN = 5_000;
/** Classes may, as one run brings thousands: no more that are over stand there than come in so many seconds. */
const WALK_CALLS = 30;

export class IdleWalk {
  readonly #classes: ReadonlyMap<string, ReadyClass>;
  #walk: Iterator<Looked, undefined> | undefined;
  /** Looks of this walk, and of the one before. */
  #looks = 0;
  #looksBefore = 0;
  /** Keys of stages that were taken from the middle of a lane, which counts them until it is cleared up: since this walk began, and before. */
  #leftBehind = new Set<string>();
  #clearing = new Set<string>();

  constructor(classes: ReadonlyMap<string, ReadyClass>) {
    this.#classes = classes;
  }

  leftBehind(key: string): void {
    this.#leftBehind.add(key);
  }

  /** `toClear`: something may have been taken from the middle of the lane. */
  take(lookAt: (lane: Lane, ready: ReadyClass, toClear: boolean) => void, done: (ready: ReadyClass) => void): void {
    const known = Math.max(this.#classes.size, this.#looksBefore, this.#looks);
    const looks = Math.max(LOOKS_MIN, Math.ceil(known / WALK_CALLS));
    for (let left = looks; left > 0; left -= 1, this.#looks += 1) {
      const { value } = (this.#walk ??= this.#begin()).next();
      if (value === undefined) {
        this.#walk = undefined;
        return;
      }
      const { ready, lane } = value;
      if (lane === undefined) done(ready);
      else lookAt(lane, ready, this.#clearing.has(lane.key));
    }
  }

  #begin(): Iterator<Looked, undefined> {
    this.#looksBefore = this.#looks;
    this.#looks = 0;
    this.#clearing = this.#leftBehind;
    this.#leftBehind = new Set();
    return walk(this.#classes);
  }
}

function* walk(classes: ReadonlyMap<string, ReadyClass>): Generator<Looked, undefined> {
  for (const ready of classes.values()) {
    for (const lane of ready.lanes.values()) yield { ready, lane };
    yield { ready };
  }
}

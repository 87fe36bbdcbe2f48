/**
 * The classes of waiting stages that the very same runners can take: they ask for the same labels, or are bound to one runner, and
 * for sizes between which no runner makes a difference. It owns the order between their lanes; those of keys that have all the slots they may have
 * while others wait stand apart.
 *
 *  GROUP-1 A lane is in the turn of its key and priority once, and a turn in the order or among the full ones once. So a key whose stages ask for a
 *     hundred thousand sizes is one turn, and no look of anybody else's is longer for it.
 *  GROUP-2 A turn has a lane: a group may stand for long, and see any number of keys.
 */
import { Heap } from '../run/heap.ts';
import { comesBefore, type Lane } from './lane.ts';
import type { ReadyClass } from './ready-class.ts';
import type { Needs } from './sessions.ts';

interface Place {
  readonly lane: Lane;
  readonly ready: ReadyClass;
  before: Place | undefined;
  after: Place | undefined;
}

/** The lanes of one key and priority, the first made first. */
class Turn {
  readonly id: string;
  readonly key: string;
  readonly priority: number;
  /** The key's pass when the turn was put into the heap; the heap is put right when it comes to the top. */
  pass: number;
  /** Where it stands in the order of its group, while it is there. */
  at = 0;
  /** Linked, for the first of a map is found behind all that were deleted before it. */
  readonly #places = new Map<Lane, Place>();
  #first: Place | undefined;
  #last: Place | undefined;

  constructor({ key, priority, pass }: Lane) {
    this.id = turnId({ key, priority });
    this.key = key;
    this.priority = priority;
    this.pass = pass;
  }

  get lanes(): ReadonlyMap<Lane, unknown> {
    return this.#places;
  }

  add(ready: ReadyClass, lane: Lane): void {
    const place: Place = { lane, ready, before: this.#last, after: undefined };
    this.#places.set(lane, place);
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
  }

  delete(lane: Lane): void {
    const place = this.#places.get(lane);
    if (place === undefined) return;
    this.#places.delete(lane);
    const { before, after } = place;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
  }

  /** Lets go of empty lanes before it. */
  first(dropIdle: (lane: Lane) => void): Place | undefined {
    for (let place = this.#first; place !== undefined; place = this.#first) {
      dropIdle(place.lane);
      if (place.lane.count > 0) return place;
      this.delete(place.lane);
      place.ready.deleteLane(place.lane);
    }
    return undefined;
  }
}

export class ReadyGroup implements Needs {
  readonly id: string;
  readonly runner: string | undefined;
  readonly labels: readonly string[];
  /** Of one of its classes: whoever has room for that has room for all. */
  readonly least: Needs['least'];
  readonly #order = new Heap<Turn>(comesBefore, (turn, at) => void (turn.at = at));
  readonly #turns = new Map<string, Turn>();
  readonly #full = new Set<Turn>();

  constructor(id: string, { runner, labels, least }: Needs) {
    this.id = id;
    this.runner = runner;
    this.labels = labels;
    this.least = least;
  }

  /** How many turns stand apart. */
  get fullTurns(): number {
    return this.#full.size;
  }

  add(ready: ReadyClass, lane: Lane): void {
    const id = turnId(lane);
    let turn = this.#turns.get(id);
    if (turn === undefined) {
      turn = new Turn(lane);
      this.#turns.set(id, turn);
      this.#order.push(turn);
    }
    turn.add(ready, lane);
  }

  /** GROUP-2. */
  delete(lane: Lane): void {
    const turn = this.#turns.get(turnId(lane));
    if (turn === undefined) return;
    turn.delete(lane);
    if (turn.lanes.size > 0) return;
    this.#turns.delete(turn.id);
    if (!this.#full.delete(turn)) this.#order.delete(turn.at);
  }

  /**
   * The lane whose turn it is, its pass put right: lazily, for a key's pass moves on with every pick elsewhere. Turns for which `isFull`
   * says so of their first lane are put apart on the way: of the other lanes it would say the same. Empty lanes are let go of.
   */
  first(
    passOf: (key: string) => number,
    dropIdle: (lane: Lane) => void,
    isFull: (ready: ReadyClass, lane: Lane) => boolean,
  ): Lane | undefined {
    for (let turn = this.#order.peek(); turn !== undefined; turn = this.#order.peek()) {
      const first = turn.first(dropIdle);
      const pass = passOf(turn.key);
      if (first === undefined) {
        this.#order.pop();
        this.#turns.delete(turn.id);
      } else if (pass > turn.pass) {
        this.#order.pop();
        turn.pass = pass;
        this.#order.push(turn);
      } else if (isFull(first.ready, first.lane)) {
        this.#order.pop();
        this.#full.add(turn);
      } else {
        first.lane.pass = pass;
        return first.lane;
      }
    }
    return undefined;
  }

  /** Of the turns that stand apart, the lane whose turn it is; those for which `isOut` says so have none. */
  firstFull(
    passOf: (key: string) => number,
    dropIdle: (lane: Lane) => void,
    isOut: (ready: ReadyClass, lane: Lane) => boolean,
  ): Lane | undefined {
    let best: Lane | undefined;
    for (const turn of this.#full) {
      const first = turn.first(dropIdle);
      if (first === undefined) {
        this.#full.delete(turn);
        this.#turns.delete(turn.id);
        continue;
      }
      const { lane, ready } = first;
      turn.pass = Math.max(turn.pass, passOf(turn.key));
      lane.pass = turn.pass;
      if (isOut(ready, lane)) continue;
      if (best === undefined || comesBefore(lane, best)) best = lane;
    }
    return best;
  }

  /** Puts the turns of a key, or of all, back into the order. True: there were some. */
  back(key?: string): boolean {
    let some = false;
    for (const turn of this.#full) {
      if (key !== undefined && turn.key !== key) continue;
      this.#full.delete(turn);
      this.#order.push(turn);
      some = true;
    }
    return some;
  }

  /** Looked at for GROUP-1. */
  holds(lane: Lane): boolean {
    return this.#turns.get(turnId(lane))?.lanes.has(lane) === true;
  }

  /** The same: how many turns have a place, how many there are, and how many of these have no lane. */
  get placed(): { readonly placed: number; readonly turns: number; readonly empty: number; readonly lanes: number } {
    let [lanes, empty] = [0, 0];
    for (const turn of this.#turns.values()) {
      lanes += turn.lanes.size;
      if (turn.lanes.size === 0) empty += 1;
    }
    return { placed: this.#order.size + this.#full.size, turns: this.#turns.size, empty, lanes };
  }
}

function turnId({ key, priority }: Pick<Lane, 'key' | 'priority'>): string {
  return `${priority}\n${key}`;
}

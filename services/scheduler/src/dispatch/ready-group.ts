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
  /** Of those in turn at once. */
  readonly number: number;
  /** Since when the lane's first stage waits, when that was last looked at: the next one waits for less long. */
  since: number;
  at: number;
}

/** The lanes of one key and priority, the one that waits for longest first. */
class Turn {
  readonly id: string;
  readonly key: string;
  readonly priority: number;
  /** The key's pass when the turn was put into the heap; the heap is put right when it comes to the top. */
  pass: number;
  /** Where it stands in the order of its group, while it is there. */
  at = 0;
  readonly #places = new Map<Lane, Place>();
  readonly #order = new Heap<Place>(waitsLonger, (place, at) => void (place.at = at));
  #added = 0;

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
    // What it holds may be on its way.
    const place: Place = { lane, ready, number: (this.#added += 1), since: lane.since ?? -Infinity, at: 0 };
    this.#places.set(lane, place);
    this.#order.push(place);
  }

  delete(lane: Lane): void {
    const place = this.#places.get(lane);
    if (place === undefined) return;
    this.#places.delete(lane);
    this.#order.delete(place.at);
  }

  /** Lets go of empty lanes before it. */
  first(dropIdle: (lane: Lane) => void): Place | undefined {
    for (let place = this.#order.peek(); place !== undefined; place = this.#order.peek()) {
      dropIdle(place.lane);
      if (place.lane.count === 0) {
        this.delete(place.lane);
        place.ready.deleteLane(place.lane);
        continue;
      }
      if (this.#order.size === 1) return place;
      const since = place.lane.since ?? -Infinity;
      if (since <= place.since) return place;
      place.since = since;
      this.#order.delete(place.at);
      this.#order.push(place);
    }
    return undefined;
  }
}

function waitsLonger(a: Place, b: Place): boolean {
  return a.since === b.since ? a.number < b.number : a.since < b.since;
}

export class ReadyGroup implements Needs {
  readonly id: string;
  readonly runner: string | undefined;
  readonly labels: readonly string[];
  /** Of one of its classes: whoever has room for that has room for all. */
  least: Needs['least'];
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

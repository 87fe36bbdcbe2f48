/**
 * The stages that wait for the same runners: those with one set of labels, or bound to one runner. It owns their lanes and the
 * order between them; lanes of keys that have all the slots they may have while others wait stand apart.
 *
 *  CLASS-1 A lane is in the order once, or among the full ones once.
 */
import type { Least } from '@penstock/pipeline';
import { Heap } from '../run/heap.ts';
import type { Pool } from './key-slots.ts';
import { Lane } from './lane.ts';
import type { ReadyStages } from './ready-stage.ts';

export class ReadyClass {
  readonly id: string;
  /** Names the labels and the least. */
  readonly labelSet: string;
  readonly labels: readonly string[];
  readonly runner: string | undefined;
  readonly least: Least | undefined;
  readonly lanes = new Map<string, Lane>();
  readonly #order = new Heap<Lane>(comesBefore);
  readonly #full = new Map<string, Lane>();
  /** Remembered until runners, their labels or slots change. */
  pool: { readonly version: number; readonly of: Pool } | undefined;
  /** The same of whether any runner has its labels, whatever it has room for. */
  declared: { readonly version: number; readonly is: boolean } | undefined;

  constructor(
    id: string,
    { labels, labelSet, least }: Pick<ReadyStages, 'labels' | 'labelSet' | 'least'>,
    runner: string | undefined,
  ) {
    this.id = id;
    this.labelSet = labelSet;
    this.labels = labels;
    this.least = least;
    this.runner = runner;
  }

  get orderedLanes(): number {
    return this.#order.size + this.#full.size;
  }

  /** How many lanes stand apart. */
  get fullLanes(): number {
    return this.#full.size;
  }

  /** False: it was let go of, empty. */
  has(lane: Lane): boolean {
    return this.lanes.get(laneId(lane)) === lane;
  }

  laneOf(stages: ReadyStages): Lane | undefined {
    return this.lanes.get(laneId(stages));
  }

  newLane(stages: ReadyStages, pass: number): Lane {
    const lane = new Lane(stages, pass);
    this.lanes.set(laneId(lane), lane);
    this.#order.push(lane);
    return lane;
  }

  /**
   * The lane whose turn it is. Passes are put right lazily, for a key's pass moves on with every pick elsewhere. Lanes for which
   * `isFull` says so are put apart on the way; it also lets go of what waits no more at the front of the lane.
   */
  first(passOf: (key: string) => number, isFull: (lane: Lane) => boolean): Lane | undefined {
    for (let lane = this.#order.peek(); lane !== undefined; lane = this.#order.peek()) {
      const full = isFull(lane);
      if (lane.count === 0) {
        this.#order.pop();
        this.lanes.delete(laneId(lane));
        continue;
      }
      const pass = passOf(lane.key);
      if (pass > lane.pass) {
        this.#order.pop();
        lane.pass = pass;
        this.#order.push(lane);
      } else if (full) {
        this.#order.pop();
        this.#full.set(laneId(lane), lane);
      } else return lane;
    }
    return undefined;
  }

  /** Of the lanes that stand apart, the one whose turn it is; those for which `isOut` says so have none. */
  firstFull(
    passOf: (key: string) => number,
    dropIdle: (lane: Lane) => void,
    isOut: (lane: Lane) => boolean,
  ): Lane | undefined {
    let best: Lane | undefined;
    for (const [id, lane] of this.#full) {
      dropIdle(lane);
      if (lane.count === 0) {
        this.#full.delete(id);
        this.lanes.delete(id);
        continue;
      }
      lane.pass = Math.max(lane.pass, passOf(lane.key));
      if (isOut(lane)) continue;
      if (best === undefined || comesBefore(lane, best)) best = lane;
    }
    return best;
  }

  /** Puts the lanes of a key, or of all, back into the order. True: there were some. */
  back(key?: string): boolean {
    let some = false;
    for (const [id, lane] of this.#full) {
      if (key !== undefined && lane.key !== key) continue;
      this.#full.delete(id);
      this.#order.push(lane);
      some = true;
    }
    return some;
  }
}

export function comesBefore(a: Pick<Lane, 'priority' | 'pass'>, b: Pick<Lane, 'priority' | 'pass'>): boolean {
  return a.priority === b.priority ? a.pass < b.pass : a.priority > b.priority;
}

function laneId({ key, priority }: Pick<Lane, 'key' | 'priority'>): string {
  return `${priority}\n${key}`;
}

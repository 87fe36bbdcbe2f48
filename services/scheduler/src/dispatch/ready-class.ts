/** The stages that wait with one set of labels and sizes, or bound to one runner with these. It owns their lanes; the order between these is their group's. */
import type { Least } from '@penstock/pipeline';
import type { Pool } from './key-slots.ts';
import { Lane } from './lane.ts';
import type { ReadyStages } from './ready-stage.ts';

/** A lane, and the class that it is of. */
export interface ClassLane {
  readonly ready: ReadyClass;
  readonly lane: Lane;
}

export class ReadyClass {
  readonly id: string;
  /** Names the labels and the least. */
  readonly labelSet: string;
  readonly labels: readonly string[];
  readonly runner: string | undefined;
  readonly least: Least | undefined;
  readonly lanes = new Map<string, Lane>();
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
    return lane;
  }

  deleteLane(lane: Lane): void {
    this.lanes.delete(laneId(lane));
  }
}

export function* lanesOf(classes: ReadonlyMap<string, ReadyClass>): Generator<ClassLane, undefined> {
  for (const ready of classes.values()) for (const lane of ready.lanes.values()) yield { ready, lane };
}

function laneId({ key, priority }: Pick<Lane, 'key' | 'priority'>): string {
  return `${priority}\n${key}`;
}

/**
 * How much may be read into memory at a take-over. Partitions open at the same time, and what each has read so far counts for all
 * of them until its runs are counted themselves.
 */
import type { RunId } from '@penstock/run';
import type { RunDocument } from '@penstock/store';
import type { ReservedRoom } from '../partition/restored-partition.ts';
import { bytesOfHistory } from '../run/held-bytes.ts';
import { isTight, type SchedulerLoad } from '../run/scheduler-load.ts';

/** Objects on the heap for a character of a text that is not read yet, with what it means; and for each of its stages. */
const TEXT_FACTOR = 4;
const STAGE_BYTES = 1_024;

export class RestoreRoom implements ReservedRoom {
  readonly #load: SchedulerLoad;
  readonly #ofKey = new Map<string, number>();
  readonly #ofRun = new Map<RunId, number>();
  /** Texts that have been counted, by key: runs of one text share what it means. */
  readonly #texts = new Map<string, Set<string>>();
  #taken = 0;

  constructor(load: SchedulerLoad) {
    this.#load = load;
  }

  get bytes(): number {
    return this.#taken;
  }

  isTight(key: string): boolean {
    return isTight(this.#load, this.#ofKey.get(key) ?? 0);
  }

  take(key: string, { state, events }: Pick<RunDocument, 'state' | 'events'>): void {
    const texts = this.#texts.get(key) ?? new Set();
    this.#texts.set(key, texts);
    const isNew = !texts.has(state.yaml);
    texts.add(state.yaml);
    const shared = isNew ? TEXT_FACTOR * state.yaml.length + STAGE_BYTES * state.stages.length : 0;
    const bytes = bytesOfHistory(events, state) + shared;
    // A load that began anew reads it again.
    this.free(state.id);
    this.#ofRun.set(state.id, bytes);
    this.#ofKey.set(key, (this.#ofKey.get(key) ?? 0) + bytes);
    this.#count(bytes);
  }

  free(runId: RunId): void {
    const bytes = this.#ofRun.get(runId);
    if (bytes === undefined) return;
    this.#ofRun.delete(runId);
    this.#count(-bytes);
  }

  /** The runs are counted themselves now, or thrown away. */
  freeAll(): void {
    this.#count(-this.#taken);
    this.#ofRun.clear();
    this.#ofKey.clear();
    this.#texts.clear();
  }

  #count(bytes: number): void {
    this.#taken += bytes;
    this.#load.liveBytes += bytes;
  }
}

/**
 * How much may be read into memory at a take-over. Partitions open at the same time, and what each has read so far counts for all
 * of them until its runs are counted themselves.
 */
import type { RunDocument } from '@penstock/store';
import { bytesOfHistory } from '../run/held-bytes.ts';
import { isTight, type SchedulerLoad } from '../run/scheduler-load.ts';

/** Objects on the heap for a character of a text that is not read yet, with what it means; and for each of its stages. */
const TEXT_FACTOR = 4;
const STAGE_BYTES = 1_024;

export class RestoreRoom {
  readonly #load: SchedulerLoad;
  readonly #ofKey = new Map<string, number>();
  /** Texts that have been counted, by key: runs of one text share what it means. */
  readonly #texts = new Map<string, Set<string>>();
  #taken = 0;

  constructor(load: SchedulerLoad) {
    this.#load = load;
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
    this.#ofKey.set(key, (this.#ofKey.get(key) ?? 0) + bytes);
    this.#load.liveBytes += bytes;
    this.#taken += bytes;
  }

  /** The runs are counted themselves now, or thrown away. */
  free(): void {
    this.#load.liveBytes -= this.#taken;
    this.#taken = 0;
    this.#ofKey.clear();
    this.#texts.clear();
  }
}

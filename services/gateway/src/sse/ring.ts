/**
 * The newest messages of a watched run, encoded once for all of its clients, in batches that are one write each. A
 * client follows by the number of the next batch that it wants; one that has fallen behind the oldest reads by itself.
 */
import { Cursor } from '../event-stream/cursor.ts';
import type { Emission } from '../event-stream/emission.ts';
import { WRITE_BYTES } from './client.ts';
import type { Frames } from './frame-memory.ts';
import { framesOf } from './frames.ts';

/** So much is kept in any case, for clients that join late. */
const KEPT_BYTES = 512 * 1024;
/** So much is kept at most for clients that have not taken it yet. */
const KEPT_FOR_CLIENTS_BYTES = 8 * 1024 * 1024;

export class Batch {
  readonly emissions: Emission[] = [];
  /** The cursor before its first message, and behind its last. */
  readonly before: Cursor;
  readonly after: Cursor;
  readonly #runId: string;
  size = 0;
  #frames: Frames | undefined;

  constructor(before: Cursor, runId: string) {
    this.before = before.copy();
    this.after = before.copy();
    this.#runId = runId;
  }

  add(emission: Emission): void {
    this.emissions.push(emission);
    this.after.advance(emission.position, emission.count);
    this.size += emission.size;
  }

  /** Made when it is first wanted; held by the batch until it is dropped. */
  get frames(): Frames {
    this.#frames ??= framesOf(this.emissions, this.before.copy(), this.#runId).frames;
    return this.#frames;
  }

  drop(): void {
    this.#frames?.letGo();
    this.#frames = undefined;
  }
}

export class Ring {
  readonly #runId: string;
  #batches: Batch[] = [];
  /** The number of the oldest batch. */
  #first = 0;
  #size = 0;

  constructor(runId: string) {
    this.#runId = runId;
  }

  /** The number that the next batch will have. */
  get next(): number {
    return this.#first + this.#batches.length;
  }

  get cursor(): Cursor {
    return this.#batches.at(-1)?.after ?? this.#start;
  }
  #start = new Cursor();

  /** Undefined: the batch is gone already, or not there yet. */
  batch(number: number): Batch | undefined {
    return this.#batches[number - this.#first];
  }

  /** `needed` is the number of the oldest batch that a client still wants. */
  push(emissions: readonly Emission[], needed: number): void {
    let batch: Batch | undefined;
    for (const emission of emissions) {
      if (batch === undefined || batch.size >= WRITE_BYTES) {
        batch = new Batch(this.cursor, this.#runId);
        this.#batches.push(batch);
      }
      batch.add(emission);
      this.#size += emission.size;
    }
    this.#trim(needed);
  }

  /** Of all batches from this one on. */
  sizeFrom(number: number): number {
    let size = 0;
    for (let at = this.next - 1; at >= Math.max(number, this.#first); at -= 1) size += this.batch(at)?.size ?? 0;
    return size;
  }

  /** The batch to begin with for a client with this cursor; undefined: a part of what it lacks is gone. */
  joinAt(cursor: Cursor): number | undefined {
    if (!cursor.covers(this.#start)) return undefined;
    const index = this.#batches.findIndex((batch) => !cursor.covers(batch.after));
    return index < 0 ? this.next : this.#first + index;
  }

  #trim(needed: number): void {
    for (let oldest = this.#batches[0]; oldest !== undefined && this.#batches.length > 1; oldest = this.#batches[0]) {
      const rest = this.#size - oldest.size;
      if (rest < KEPT_BYTES || (this.#first >= needed && rest < KEPT_FOR_CLIENTS_BYTES)) return;
      this.#batches.shift()?.drop();
      this.#first += 1;
      this.#size = rest;
      this.#start = oldest.after;
    }
  }
}

/**
 * The newest messages of a watched run, encoded once for all of its clients, in batches that are one write each. A
 * client follows by the number of the next batch that it wants; one that has fallen behind the oldest reads by itself.
 */
import { Told } from '../event-stream/cursor.ts';
import type { StoryMessage } from '../event-stream/emitted-message.ts';
import { WRITE_BYTES } from './client.ts';
import { frameOf } from './frames.ts';

/** Kept in any case, for those who join late. */
const KEPT_BYTES = 512 * 1024;
/** Kept for clients that have not taken it yet. */
const KEPT_FOR_CLIENTS_BYTES = 8 * 1024 * 1024;

export class Batch {
  readonly messages: StoryMessage[] = [];
  /** What was told before its first message, and with its last. */
  readonly before: Told;
  readonly after: Told;
  readonly #runId: string;
  size = 0;
  #bytes: Buffer | undefined;

  constructor(before: Told, runId: string) {
    this.before = before.copy();
    this.after = before.copy();
    this.#runId = runId;
  }

  add(message: StoryMessage): void {
    this.messages.push(message);
    this.after.advance(message.place);
    this.size += message.size;
  }

  get bytes(): Buffer {
    if (this.#bytes === undefined) {
      const told = this.before.copy();
      let text = '';
      for (const message of this.messages) {
        told.advance(message.place);
        text += frameOf(message, told, this.#runId);
      }
      this.#bytes = Buffer.from(text);
    }
    return this.#bytes;
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

  get told(): Told {
    return this.#batches.at(-1)?.after ?? this.#start;
  }
  #start = new Told();

  /** Undefined: gone already, or not there yet. */
  batch(number: number): Batch | undefined {
    return this.#batches[number - this.#first];
  }

  /** `needed` is the number of the oldest batch that a client still wants. */
  push(messages: readonly StoryMessage[], needed: number): void {
    let batch: Batch | undefined;
    for (const message of messages) {
      if (batch === undefined || batch.size >= WRITE_BYTES) {
        batch = new Batch(this.told, this.#runId);
        this.#batches.push(batch);
      }
      batch.add(message);
      this.#size += message.size;
    }
    this.#trim(needed);
  }

  /** The batch to begin with for someone who was told so much; undefined: a part of it is gone. */
  joinAt(told: Told): number | undefined {
    if (!told.covers(this.#start)) return undefined;
    const index = this.#batches.findIndex((batch) => !told.covers(batch.after));
    return index < 0 ? this.next : this.#first + index;
  }

  #trim(needed: number): void {
    for (let oldest = this.#batches[0]; oldest !== undefined && this.#batches.length > 1; oldest = this.#batches[0]) {
      const left = this.#size - oldest.size;
      if (left < KEPT_BYTES || (this.#first >= needed && left < KEPT_FOR_CLIENTS_BYTES)) return;
      this.#batches.shift();
      this.#first += 1;
      this.#size = left;
      this.#start = oldest.after;
    }
  }
}

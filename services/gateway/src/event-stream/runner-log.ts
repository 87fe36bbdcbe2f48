/** What one runner has written for a run: the chunks that are not handled yet, and how far those before them reach. */
import type { StoredChunk } from '@penstock/bus';
import type { StreamPosition } from './cursor.ts';

/**
 * An owner stores a mark when no process of the attempt is left, so that little can stand behind it. Behind more than this
 * it is no owner's, and is passed over: what waits in memory is bounded.
 */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;

export class RunnerLog {
  /** In the order in which the journal names runners; undefined: it has not named this one. */
  number: number | undefined;
  /** Chunks that are not handled yet, in the order of the stream. */
  readonly queue: RunnerQueue = new RunnerQueue();
  /** The sequence of the last chunk that was handled. */
  handled = 0;
  #lineSequence = 0;
  #lineIndex = 0;

  get head(): StoredChunk | undefined {
    return this.queue.head;
  }

  get hasTooMuch(): boolean {
    return this.queue.bytes > WAITING_BYTES_MAX;
  }

  take(): void {
    this.handled = Math.max(this.handled, this.queue.shift()?.sequence ?? 0);
  }

  /**
   * Of the first of `count` lines. The lines of one chunk are counted on from those emitted last, so that cursors only grow.
   */
  linePosition(sequence: number, count: number): StreamPosition {
    if (sequence > this.#lineSequence) {
      this.#lineSequence = sequence;
      this.#lineIndex = 0;
    }
    const index = this.#lineIndex;
    this.#lineIndex += count;
    return { kind: 'line', runner: this.number ?? 0, sequence: this.#lineSequence, index };
  }
}

/** Chunks with the sum of their bytes; taking one out does not move the others. */
class RunnerQueue {
  #chunks: StoredChunk[] = [];
  #first = 0;
  bytes = 0;

  get head(): StoredChunk | undefined {
    return this.#chunks[this.#first];
  }

  push(chunk: StoredChunk): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.chunk.output.length;
  }

  shift(): StoredChunk | undefined {
    const { head } = this;
    if (head === undefined) return undefined;
    this.bytes -= head.chunk.output.length;
    this.#first += 1;
    if (this.#first === this.#chunks.length || this.#first > 1_024) {
      this.#chunks = this.#chunks.slice(this.#first);
      this.#first = 0;
    }
    return head;
  }
}

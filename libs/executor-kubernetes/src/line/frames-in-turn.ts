/**
 * The frames of a stage's lines, taken one after the other however long each takes. It owns how much of them waits: their other end may be a
 * stranger's, and a guard of ours waits until it is told that its output was taken.
 */
import { BadLine } from '../errors.ts';
import type { LineFrame } from './frames.ts';

/** Both windows of output, what is masked in it, and the stage's own files. */
const HELD_BYTES_MAX = 16 * 1024 ** 2;
/** Of a frame besides its bytes. */
const FRAME_BYTES = 256;

export class FramesInTurn {
  readonly #take: (frame: LineFrame) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  #heldBytes = 0;
  /** Settles with the last of those that have come. Never rejects. */
  taken: Promise<void> = Promise.resolve();

  constructor(take: (frame: LineFrame) => Promise<void>, failed: (error: unknown) => void) {
    this.#take = take;
    this.#failed = failed;
  }

  /** @throws BadLine */
  add(frame: LineFrame): void {
    const bytes = FRAME_BYTES + ('bytes' in frame ? frame.bytes.length : 0);
    this.#heldBytes += bytes;
    if (this.#heldBytes > HELD_BYTES_MAX) throw new BadLine('more than may wait to be taken');
    this.taken = this.taken
      .then(() => this.#take(frame))
      .catch(this.#failed)
      .then(() => {
        this.#heldBytes -= bytes;
      });
  }
}

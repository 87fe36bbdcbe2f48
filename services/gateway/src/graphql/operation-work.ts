/**
 * What one operation reads and answers, in slices and with an end:
 *
 *  WORK-1 It never has the event loop for much longer than a slice, whatever it is about: it pauses between views, between the
 *     runs whose stages it answers, and between pieces of its answer.
 *  WORK-2 What it holds in memory is bounded, whatever the runs are that it asks for.
 */
import { BoundedQueue } from '@penstock/async';
import { BadUserInput } from '@penstock/errors';
import { SLICE_MS, type LoopShare } from './loop-share.ts';

/** Of an answer, as it goes out. */
export const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Characters of views that one operation may keep: some ten times of what its answer could have of them. */
export const KEPT_CHARACTERS_MAX = 64 * 1024 * 1024;
/** Stages that are answered without looking at the clock. */
const STAGES_UNPAUSED = 1_000;

export class OperationWork {
  readonly #share: LoopShare;
  readonly #caller: string;
  #reads: BoundedQueue | undefined;
  #sliceFrom = performance.now();
  #stages = 0;
  #keptCharacters = 0;
  #answerBytesMin = 0;
  /** Whether something was read for it that may be another thing later. */
  isAboutChanges = false;
  /** A run was read that is none of the caller's tenants': commits about it are not asked for. */
  isOfAnother = false;
  /** Runs may be gone by it that kept answers have. */
  removesRuns = false;

  constructor(share: LoopShare, caller: string) {
    this.#share = share;
    this.#caller = caller;
  }

  /** Resolves at once, or where the slice is used up, at the next one. */
  async pause(): Promise<void> {
    if (this.#isUsedUp) await this.#next();
  }

  /** Reads one list of the operation at a time: each holds a part of what its store answers. */
  async read<T>(list: () => Promise<T>): Promise<T> {
    this.#reads ??= new BoundedQueue({ atOnce: 1 });
    return await this.#reads.run(list);
  }

  /** For views that are looked at and forgotten. */
  readonly look = (): Promise<void> => this.pause();

  /** For views that are kept until they are answered. Throws `BadUserInput`. */
  readonly keep = (characters: number): Promise<void> => {
    this.#keptCharacters += characters;
    if (this.#keptCharacters > KEPT_CHARACTERS_MAX)
      throw new BadUserInput(
        "These runs have too many stages and outputs for one answer: ask for fewer at a time with a lower 'limit', and go on with 'before'.",
      );
    return this.pause();
  };

  /** The stages as they are, where they may be answered right away. Throws `BadUserInput`. */
  stages<T>(stages: readonly T[], bytesMin: number): readonly T[] | Promise<readonly T[]> {
    this.#answerBytesMin += stages.length * bytesMin;
    if (this.#answerBytesMin > ANSWER_BYTES_MAX) throw tooLarge('stages');
    this.#stages += stages.length;
    return this.#isUsedUp ? this.#next().then(() => stages) : stages;
  }

  get #isUsedUp(): boolean {
    return this.#stages > STAGES_UNPAUSED || performance.now() - this.#sliceFrom > SLICE_MS;
  }

  async #next(): Promise<void> {
    await this.#share.turn(this.#caller);
    this.#stages = 0;
    this.#sliceFrom = performance.now();
  }
}

/** `list` is the way to the list in the answer, as `runs.stages`. */
export function tooLarge(list: string): BadUserInput {
  return new BadUserInput(
    `The answer has more than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB; what is too much is in the list '${list}'. ` +
      "Ask for a page of it at a time: runs by 'limit' and 'before', stages by 'first' and 'after'.",
  );
}

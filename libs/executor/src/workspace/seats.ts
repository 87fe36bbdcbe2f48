/**
 * Which run has which seat: a folder that keeps its name while runs of one key have it one after the other (`workspaces.ts`). In
 * memory, and in a file for the next process.
 *
 * SEATS-1. A seat is the last run's that has taken it, and that stands in the file before `take` returns. What the file says of runs that
 *     have given it up meanwhile is for who reads it to find out: they have ended.
 * SEATS-2. Of a line that was cut short at either end nothing counts: its run has not begun. Where the disk has room the file has no more lines than
 *     LINES_MAX and twice the runs that have a seat.
 */
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const LINES_MAX = 4_096;
/** Its end tells it from one that was cut short, and its beginning from one before which a machine that lost its power has left zeros. */
const LINE = /^([0-9a-zA-Z-]+) (\w+) \.$/;
const lineOf = (runId: string, seat: string): string => `${runId} ${seat} .\n`;

export class Seats {
  readonly #file: string;
  readonly #ofRuns: Map<string, string>;
  #lines = 0;

  /** `isOf`: whether there is a seat of this name, and the run can have it. */
  constructor(file: string, isOf: (seat: string, runId: string) => boolean) {
    this.#file = file;
    this.#ofRuns = readSeats(file, isOf);
    if (this.#ofRuns.size === 0) rmSync(file, { force: true });
    else this.#shorten();
  }

  get runs(): Iterable<string> {
    return this.#ofRuns.keys();
  }

  get names(): Iterable<string> {
    return this.#ofRuns.values();
  }

  of(runId: string): string | undefined {
    return this.#ofRuns.get(runId);
  }

  /** Throws, and nothing is taken, where the disk has no room. */
  take(seat: string, runId: string): void {
    if (this.#lines >= LINES_MAX + this.#ofRuns.size) this.#shorten();
    // A line begins anew behind one that was cut short.
    appendFileSync(this.#file, `\n${lineOf(runId, seat)}`, { mode: 0o600 });
    this.#lines += 1;
    this.#ofRuns.set(runId, seat);
  }

  giveUp(runId: string): void {
    this.#ofRuns.delete(runId);
  }

  #shorten(): void {
    const next = `${this.#file}.new`;
    try {
      writeFileSync(next, [...this.#ofRuns].map(([runId, seat]) => lineOf(runId, seat)).join(''), { mode: 0o600 });
      renameSync(next, this.#file);
      this.#lines = this.#ofRuns.size;
    } catch {
      // The disk is full: what stands in the longer one is true, too.
      rmSync(next, { force: true });
    }
  }
}

function readSeats(file: string, isOf: (seat: string, runId: string) => boolean): Map<string, string> {
  const last = new Map<string, string>();
  for (const line of readIfThere(file).split('\n')) {
    const [, runId, seat] = LINE.exec(line) ?? [];
    if (runId === undefined || seat === undefined) continue;
    // In the order of the lines: of two that a run has taken, it has the later one.
    last.delete(seat);
    last.set(seat, runId);
  }
  return new Map([...last].filter(([seat, runId]) => isOf(seat, runId)).map(([seat, runId]) => [runId, seat]));
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

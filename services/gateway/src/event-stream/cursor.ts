/**
 * How far a client has come in the event stream of a run: the position in the run's events, and in the log of each runner
 * that wrote some of it (P21). It survives any interleaving of them, so it stays valid when the event stream is merged
 * again, and a chunk that was missed while another runner's later one was emitted is emitted after the resume.
 */

/** Where a message stands. `note`: one of the messages that only the event of `version` brings about, just before it. */
export type StreamPosition =
  | { readonly kind: 'event'; readonly version: number }
  | LinePosition
  | { readonly kind: 'note'; readonly version: number; readonly index: number };

export interface LinePosition {
  readonly kind: 'line';
  /** The runner's number in the order in which the journal names runners. */
  readonly runner: number;
  readonly sequence: number;
  readonly index: number;
}

interface RunnerPosition {
  /** Of the chunk whose line was emitted last. */
  readonly sequence: number;
  /** How many lines at that sequence were emitted. */
  readonly lines: number;
}

/** Of the numbers in a cursor. */
export const RADIX = 36;
const ENCODED = /^([\da-z]{1,10})\.([\da-z]{1,10})((?:\.[\da-z]{1,4}:[\da-z]{1,10}:[\da-z]{1,10})*)\.([0-9a-f]{4})$/u;
/** About a thousand runners of one run; a request with a longer header would be refused. */
const ENCODED_LENGTH_MAX = 12 * 1024;

export class Cursor {
  /** Of the last event that was emitted. */
  version = 0;
  /** How many notes before the event `version + 1` were emitted. */
  notes = 0;
  /** By the runners' numbers. */
  readonly runners = new Map<number, RunnerPosition>();

  /** Null: the text is not a cursor of this run. */
  static decode(text: string, runId: string): Cursor | null {
    if (text.length > ENCODED_LENGTH_MAX) return null;
    const match = ENCODED.exec(Buffer.from(text, 'base64url').toString('latin1'));
    if (match === null || match[4] !== runId.slice(-4)) return null;
    const [, version = '', notes = '', runners = ''] = match;
    const cursor = new Cursor();
    cursor.version = Number.parseInt(version, RADIX);
    cursor.notes = Number.parseInt(notes, RADIX);
    for (const position of runners.split('.').slice(1)) {
      const [runner = 0, sequence = 0, lines = 0] = position.split(':').map((digits) => Number.parseInt(digits, RADIX));
      cursor.runners.set(runner, { sequence, lines });
    }
    return cursor.encode(runId) === text ? cursor : null;
  }

  encode(runId: string): string {
    const parts = [
      this.version.toString(RADIX),
      this.notes.toString(RADIX),
      ...this.#runnerTexts(() => true),
      runId.slice(-4),
    ];
    return Buffer.from(parts.join('.'), 'latin1').toString('base64url');
  }

  /**
   * What `encode` answers behind a line, but for its encoding and the number of lines that stands between the two texts: all that
   * the cursors of one chunk's lines differ in.
   */
  aroundLine({ runner, sequence }: LinePosition, runId: string): readonly [before: string, behind: string] {
    const before = [
      this.version.toString(RADIX),
      this.notes.toString(RADIX),
      ...this.#runnerTexts((other) => other < runner),
      `${runner.toString(RADIX)}:${sequence.toString(RADIX)}:`,
    ].join('.');
    return [before, ['', ...this.#runnerTexts((other) => other > runner), runId.slice(-4)].join('.')];
  }

  #runnerTexts(isWanted: (runner: number) => boolean): string[] {
    if (this.runners.size === 0) return [];
    return [...this.runners]
      .filter(([runner]) => isWanted(runner))
      .toSorted(([one], [other]) => one - other)
      .map(([runner, { sequence, lines }]) =>
        [runner, sequence, lines].map((number) => number.toString(RADIX)).join(':'),
      );
  }

  copy(): Cursor {
    const copy = new Cursor();
    copy.set(this);
    return copy;
  }

  set(other: Cursor): void {
    this.version = other.version;
    this.notes = other.notes;
    this.runners.clear();
    for (const [runner, position] of other.runners) this.runners.set(runner, position);
  }

  /** How many of `count` messages, the first of which stands at `position`, were emitted before: they are its first ones. */
  emittedOf(position: StreamPosition, count = 1): number {
    switch (position.kind) {
      case 'event':
        return position.version > this.version ? 0 : count;
      case 'line': {
        const reached = this.runners.get(position.runner);
        if (reached === undefined || reached.sequence < position.sequence) return 0;
        return reached.sequence > position.sequence ? count : clamp(reached.lines - position.index, count);
      }
      case 'note':
        if (position.version <= this.version) return count;
        return position.version > this.version + 1 ? 0 : clamp(this.notes - position.index, count);
    }
  }

  /** Behind `count` messages, the first of which stands at `position`. Call it only for those that were not emitted before. */
  advance(position: StreamPosition, count = 1): void {
    switch (position.kind) {
      case 'event':
        this.version = position.version;
        this.notes = 0;
        return;
      case 'line':
        this.runners.set(position.runner, { sequence: position.sequence, lines: position.index + count });
        return;
      case 'note':
        this.version = Math.max(this.version, position.version - 1);
        this.notes = position.index + count;
        return;
    }
  }

  /** Whether everything up to `other` lies before this cursor too. */
  covers(other: Cursor): boolean {
    const events = this.version > other.version || (this.version === other.version && this.notes >= other.notes);
    return events && [...other.runners].every(([runner, position]) => this.#reaches(runner, position));
  }

  #reaches(runner: number, { sequence, lines }: RunnerPosition): boolean {
    const reached = this.runners.get(runner);
    if (reached === undefined) return false;
    return reached.sequence > sequence || (reached.sequence === sequence && reached.lines >= lines);
  }
}

function clamp(number: number, max: number): number {
  return Math.min(max, Math.max(0, number));
}

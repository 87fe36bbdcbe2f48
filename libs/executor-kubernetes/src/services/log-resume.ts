/**
 * The log of a container, read by pieces of connections: which lines are new. The API gives lines from a time on, and only whole
 * seconds of it are sure; so a connection begins a little before the last one's end, and what was seen is skipped.
 *
 * Two streams of a container are stamped before they are written: lines may stand a little out of the order of their stamps.
 */
const LINE_FEED = 0x0a;
const SPACE = 0x20;
/** How far before the newest stamp the next connection begins. */
const OVERLAP_MS = 2_000;
/** Stamps that are remembered; of a container that is louder, lines that are older than the oldest of them count as seen. */
const SEEN_MAX = 20_000;
/** A longer line is cut: whoever keeps it would cut it too. */
const LINE_BYTES_MAX = 256 * 1024;

export interface LogLine {
  /** By which it is known again; undefined: it came without a stamp. */
  readonly key: string | undefined;
  /** With its line feed and without its stamp. */
  readonly bytes: Buffer;
}

export class LogResume {
  /** Stamp and length of lines: how often they were seen. The oldest first. */
  readonly #seen = new Map<string, number>();
  /** Of them, what a new connection has not repeated yet. */
  #expected = new Map<string, number>();
  #newest = '';
  #partial: Buffer[] = [];
  #partialBytes = 0;

  /** `taken`: the keys of lines that an earlier reader has taken, in their order. */
  constructor(taken: readonly string[] = []) {
    for (const key of taken) this.#took(key);
  }

  /** From when the next connection is to read; undefined: from the beginning. */
  get sinceTime(): string | undefined {
    const newest = Date.parse(this.#newest);
    return Number.isNaN(newest) ? undefined : new Date(Math.floor((newest - OVERLAP_MS) / 1000) * 1000).toISOString();
  }

  /** A connection has ended, and another begins at `sinceTime`. What it cut off comes again whole. */
  begin(): void {
    this.#partial = [];
    this.#partialBytes = 0;
    this.#expected = new Map(this.#seen);
  }

  /** The new lines in it. */
  push(piece: Buffer): LogLine[] {
    const lines: LogLine[] = [];
    for (let at = 0; at < piece.length;) {
      const end = piece.indexOf(LINE_FEED, at);
      this.#add(piece.subarray(at, end < 0 ? piece.length : end));
      if (end < 0) break;
      const line = this.#lineOf(Buffer.concat(this.#partial));
      this.#partial = [];
      this.#partialBytes = 0;
      if (line !== null) lines.push(line);
      at = end + 1;
    }
    return lines;
  }

  #add(piece: Buffer): void {
    const fits = piece.subarray(0, Math.max(0, LINE_BYTES_MAX - this.#partialBytes));
    if (fits.length === 0) return;
    this.#partial.push(fits);
    this.#partialBytes += fits.length;
  }

  #lineOf(line: Buffer): LogLine | null {
    const space = line.indexOf(SPACE);
    const stamp = line.toString('latin1', 0, Math.max(0, space));
    if (Number.isNaN(Date.parse(stamp))) return { key: undefined, bytes: Buffer.concat([line, Buffer.of(LINE_FEED)]) };
    const key = `${stamp} ${line.length}`;
    const expected = this.#expected.get(key) ?? 0;
    if (expected > 0) {
      this.#expected.set(key, expected - 1);
      return null;
    }
    const oldest = this.#seen.size < SEEN_MAX ? undefined : this.#seen.keys().next().value;
    if (oldest !== undefined && stamp < (oldest.split(' ')[0] ?? '')) return null;
    this.#took(key);
    return { key, bytes: Buffer.concat([line.subarray(space + 1), Buffer.of(LINE_FEED)]) };
  }

  #took(key: string): void {
    this.#remember(key);
    const stamp = key.slice(0, key.indexOf(' '));
    if (stamp > this.#newest) this.#newest = stamp;
  }

  #remember(key: string): void {
    this.#seen.set(key, (this.#seen.get(key) ?? 0) + 1);
    if (this.#seen.size <= SEEN_MAX) return;
    const oldest = this.#seen.keys().next().value;
    if (oldest !== undefined) this.#seen.delete(oldest);
  }
}

/**
 * The file that `$SERVICE_MASK` names: each line that a stage writes to it is a value to be masked from then on. It is looked at
 * before each part of the output, so what was written before a value was printed counts, also in the place of what was there.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs';
import type { Mask } from './mask.ts';

/** Of the file; what is behind that is not read. */
const BYTES_MAX = 64 * 1024;
/** Each makes the search anew. */
const VALUES_MAX = 100;
const VALUE_CHARACTERS_MIN = 4;
/** Two changes within a tick of the file system's clock have one time: by then the next one has another. */
const TICK_MS = 20;
const UNKNOWN = 'unknown';

export class MaskFile {
  readonly #path: string;
  readonly #mask: Mask;
  readonly #remark: (text: string) => void;
  /** As the file was when it was last read; unknown where it may have changed since without a sign of it. */
  #state = '';
  readonly #taken = new Set<string>();
  #isFull = false;
  #isThere = false;

  /** `remark` takes a line for the stage's log. */
  constructor(path: string, mask: Mask, remark: (text: string) => void) {
    this.#path = path;
    this.#mask = mask;
    this.#remark = remark;
  }

  /** Whether the last look may have found something at its path. */
  get isThere(): boolean {
    return this.#isThere;
  }

  /** Takes the lines that are new. */
  refresh(): void {
    if (this.#isFull) return;
    const found = lookAt(this.#path);
    this.#isThere = found !== null;
    const { size, changedAt } = found ?? NOTHING;
    const state = size === 0 ? '' : `${size} ${changedAt}`;
    if (state === this.#state) return;
    const text = this.#read();
    if (text === null) return;
    this.#state = Date.now() - changedAt > TICK_MS ? state : UNKNOWN;
    // A line is taken when it has ended: half of a value would be none.
    const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
    const values = lines.map((line) => line.trimEnd()).filter((line) => line.trim().length >= VALUE_CHARACTERS_MIN);
    const fresh = [...new Set(values)].filter((value) => !this.#taken.has(value));
    const taken = fresh.slice(0, VALUES_MAX - this.#taken.size);
    for (const value of taken) this.#taken.add(value);
    this.#mask.add(taken);
    if (size <= BYTES_MAX && taken.length === fresh.length) return;
    this.#isFull = true;
    this.#remark(`$SERVICE_MASK takes ${VALUES_MAX} values in ${BYTES_MAX} bytes; what is behind them is not masked`);
  }

  /** The stage may have put anything at the path: nothing is followed or waited for. */
  #read(): string | null {
    let fd: number;
    try {
      fd = openSync(this.#path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      return null;
    }
    try {
      if (!fstatSync(fd).isFile()) return null;
      const buffer = Buffer.alloc(Math.min(BYTES_MAX, fstatSync(fd).size));
      return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0));
    } catch {
      // A disk that is out of order for a moment: it is read again before the next part of the output.
      return null;
    } finally {
      closeSync(fd);
    }
  }
}

/** For a stage whose own file is elsewhere: what that holds by now. Nothing is followed. */
export function writeMasks(path: string, bytes: Uint8Array): void {
  const flags =
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = openSync(path, flags, 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}

interface Looked {
  readonly size: number;
  readonly changedAt: number;
}

const NOTHING: Looked = { size: 0, changedAt: 0 };

/** Null where there is none; nothing where the stage has shut its folder. */
function lookAt(path: string): Looked | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found === undefined ? null : { size: found.size, changedAt: found.ctimeMs };
  } catch {
    return NOTHING;
  }
}

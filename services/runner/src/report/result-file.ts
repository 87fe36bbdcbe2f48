/**
 * A file of lines with room reserved behind them: blocks that the file has already, so that a line that fits into them can
 * be written although the disk is full. The room is filled with NUL bytes; the first of them ends the lines.
 *
 * RESULTFILE-1. A line is written whole or not at all: one that could not be is overwritten by the next.
 * RESULTFILE-2. `replace` leaves the old lines or the new ones, whenever the process is killed.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { writeAll } from './disk.ts';

/** Lines on a disk, with room reserved behind them. */
export interface ResultLines {
  /** Of the lines. */
  readonly bytes: number;
  lines(): string[];
  /** Makes room for `bytes` behind the lines. Throws where the disk has none. */
  reserve(bytes: number): void;
  /** Throws where the line fits neither into the room nor onto the disk. Also after `close`. */
  append(lines: string): void;
  /** Writes the lines anew, with room for `reserved` bytes. Throws, and changes nothing, where the disk has no room for both. */
  replace(text: string, reserved: number): void;
  close(): void;
}

const ZEROS = Buffer.alloc(64 * 1024);
/** Made beyond what is asked for, where the disk has it: room is asked for with each stage, and each time a line more. */
const AHEAD_BYTES = 64 * 1024;

export class ResultFile implements ResultLines {
  readonly #path: string;
  #fd: number | null;
  /** The end of the lines. */
  #written: number;
  /** The end of the room behind them. */
  #allocated: number;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const bytes = readFileSync(path);
    const end = bytes.indexOf(0);
    // A kill may have cut the last line short.
    this.#written = bytes.lastIndexOf(0x0a, end === -1 ? bytes.length : end) + 1;
    this.#allocated = fstatSync(this.#fd).size;
  }

  get bytes(): number {
    return this.#written;
  }

  lines(): string[] {
    return readFileSync(this.#path).toString('utf8', 0, this.#written).split('\n').slice(0, -1);
  }

  reserve(bytes: number): void {
    const wanted = this.#written + bytes;
    if (this.#allocated >= wanted) return;
    const fd = this.#open();
    try {
      for (const to of [wanted, wanted + AHEAD_BYTES])
        while (this.#allocated < to) {
          const more = Math.min(ZEROS.length, to - this.#allocated);
          writeAll(fd, ZEROS.subarray(0, more), this.#allocated);
          this.#allocated += more;
        }
    } catch (error) {
      if (this.#allocated < wanted) throw error;
      // What is wanted is there.
    } finally {
      this.#closeIfEnded(fd);
    }
  }

  append(lines: string): void {
    const fd = this.#open();
    const bytes = Buffer.from(lines);
    try {
      writeAll(fd, bytes, this.#written);
      this.#written += bytes.length;
      this.#allocated = Math.max(this.#allocated, this.#written);
    } catch (error) {
      // What was written of it is no line: zeros end the lines, and a file's end does too.
      this.#forgetPart(fd, bytes.length);
      throw error;
    } finally {
      this.#closeIfEnded(fd);
    }
  }

  replace(text: string, reserved: number): void {
    const path = `${this.#path}.new`;
    rmSync(path, { force: true });
    const next = new ResultFile(path);
    try {
      next.append(text);
      next.reserve(reserved);
      renameSync(path, this.#path);
    } catch (error) {
      next.close();
      rmSync(path, { force: true });
      throw error;
    }
    this.close();
    this.#fd = next.#fd;
    this.#written = next.#written;
    this.#allocated = next.#allocated;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #forgetPart(fd: number, bytes: number): void {
    try {
      const inRoom = Math.min(bytes, this.#allocated - this.#written);
      if (inRoom > 0) writeAll(fd, Buffer.alloc(inRoom), this.#written);
      ftruncateSync(fd, this.#allocated);
    } catch {
      // The next start skips half a line.
    }
  }

  /** A stage may end after the file was closed: its result is kept all the same. */
  #open(): number {
    return this.#fd ?? openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  #closeIfEnded(fd: number): void {
    if (this.#fd === null) closeSync(fd);
  }
}

/** A runner's disk, which survives its process: results, sessions, chunks, the folders of runs. It may be full. */
import type { ResultLines } from '@penstock/runner/testing';

export class SimDisk {
  full = false;
  /** Unanswered results, by `resultId`, with what they are about. */
  readonly results = new Map<string, string>();
  /** Runs with a folder, and the partition of each. */
  readonly workspaces = new Map<string, number>();
  readonly sessions: string[] = [];
  #lines: string[] = [];

  /** For one process. Lines that fit into what was reserved are taken although the disk is full. */
  openResults(): ResultLines {
    let room = 0;
    const all = (): string => this.#lines.join('');
    const check = (bytes: number): void => {
      if (this.full && bytes > room) throw diskFull();
    };
    return {
      get bytes() {
        return all().length;
      },
      lines: () => this.#lines.map((line) => line.slice(0, -1)),
      reserve: (bytes) => {
        check(bytes);
        room = Math.max(room, bytes);
      },
      append: (text) => {
        check(text.length);
        room = Math.max(0, room - text.length);
        this.#add(text);
      },
      replace: (text, reserved) => {
        // Old and new lie beside each other for a moment.
        if (this.full) throw diskFull();
        room = reserved;
        this.#lines = [];
        this.results.clear();
        this.#add(text);
      },
      close: () => {},
    };
  }

  #add(text: string): void {
    for (const line of linesOf(text)) {
      this.#lines.push(line);
      const { id, done } = JSON.parse(line) as { id?: string; done?: string };
      if (id !== undefined) this.results.set(id, line);
      if (done !== undefined) this.results.delete(done);
    }
  }

  /** Throws where it is full. */
  write(): void {
    if (this.full) throw diskFull();
  }
}

function linesOf(text: string): string[] {
  return text.split('\n').flatMap((line) => (line === '' ? [] : [`${line}\n`]));
}

function diskFull(): Error {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

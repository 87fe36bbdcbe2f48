/** The names of sessions, on the disk of a runner. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';

/** Names of sessions on a disk. Writing throws where that is full. */
export interface SessionNames {
  read(): readonly string[];
  append(session: string): void;
  replace(sessions: readonly string[]): void;
}

export class SessionFile implements SessionNames {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(): readonly string[] {
    try {
      // A line that a kill has cut short names no session.
      return readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => /^[0-9a-f-]{36}$/.test(line));
    } catch {
      return [];
    }
  }

  append(session: string): void {
    appendFileSync(this.#path, `${session}\n`, { mode: 0o600 });
  }

  replace(sessions: readonly string[]): void {
    writeFileSync(this.#path, sessions.map((session) => `${session}\n`).join(''), { mode: 0o600 });
  }
}

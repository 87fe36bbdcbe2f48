/**
 * The sessions that this runner has begun, on its disk, so that its next start can end the leases of those that a crash has
 * left: nobody need wait for them to run out.
 *
 * SESSIONLIST-1. A lease is ended only when every process of its session is dead (`killLeftovers` was called before), and
 *     every result of it that was kept is answered: its end makes owners declare its attempts lost (P5, P16).
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { buckets, endLease, type Bus } from '@penstock/bus';
import type { Logger } from '@penstock/telemetry';

export interface SessionListOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly runner: string;
  readonly file: string;
}

export class SessionList {
  readonly #options: SessionListOptions;
  #earlier: readonly string[];
  readonly #own: string[] = [];

  constructor(options: SessionListOptions) {
    this.#options = options;
    this.#earlier = readSessions(options.file);
  }

  /** Before the session takes its first stage. */
  begun(session: string): void {
    this.#own.push(session);
    appendFileSync(this.#options.file, `${session}\n`, { mode: 0o600 });
  }

  /** A failure leaves the leases to their TTL. */
  async endEarlier(resultsAnswered: Promise<boolean>): Promise<void> {
    const { bus, log, runner, file } = this.#options;
    if (this.#earlier.length === 0 || !(await resultsAnswered)) return;
    try {
      for (const session of this.#earlier) await endLease(bus, buckets.runners, `${runner}.${session}`);
      this.#earlier = [];
      writeFileSync(file, this.#own.map((session) => `${session}\n`).join(''), { mode: 0o600 });
    } catch (error) {
      log.warn({ err: error }, 'the leases of the last start could not be ended; they run out');
    }
  }
}

function readSessions(file: string): readonly string[] {
  try {
    // A line that a kill has cut short names no session.
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => /^[0-9a-f-]{36}$/.test(line));
  } catch {
    return [];
  }
}

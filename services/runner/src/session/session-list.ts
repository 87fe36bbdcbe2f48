/**
 * The sessions that this runner has begun, on its disk, so that its next start can end the leases of those that a crash has
 * left: nobody need wait for them to run out.
 *
 * SESSIONLIST-1. A lease is ended only when every process of its session is dead (`killLeftovers` was called before), and
 *     every result of it that was kept is answered: its end makes owners declare its attempts lost (P5, P16). That of a session
 *     whose stages are taken up is ended at once: the present lease lists those, and such results, already (P13, P36).
 */
import { buckets } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { SessionWorld } from './session-world.ts';

export interface SessionListOptions {
  readonly ports: Pick<SessionWorld, 'endLease' | 'sessions'>;
  readonly log: Log;
  readonly runner: string;
}

export class SessionList {
  readonly #options: SessionListOptions;
  #earlier: readonly string[];
  readonly #own: string[] = [];

  constructor(options: SessionListOptions) {
    this.#options = options;
    this.#earlier = options.ports.sessions.read();
  }

  /** Before the session takes its first stage. */
  begun(session: string): void {
    this.#own.push(session);
    this.#options.ports.sessions.append(session);
  }

  /** Once the present lease lists all that is not lost. True: it lived until then, so nothing of it counts as lost that is listed. */
  async endHolder(session: string): Promise<boolean> {
    const { ports, log, runner } = this.#options;
    try {
      return await ports.endLease(buckets.runners, `${runner}.${session}`);
    } catch (error) {
      log.warn({ err: error, session }, 'the lease of the last start could not be ended; it runs out');
      return false;
    }
  }

  /** A failure leaves the leases to their TTL. */
  async endEarlier(resultsAnswered: Promise<boolean>): Promise<void> {
    const { ports, log, runner } = this.#options;
    if (this.#earlier.length === 0 || !(await resultsAnswered)) return;
    try {
      for (const session of this.#earlier) await ports.endLease(buckets.runners, `${runner}.${session}`);
      this.#earlier = [];
      ports.sessions.replace(this.#own);
    } catch (error) {
      log.warn({ err: error }, 'the leases of the last start could not be ended; they run out');
    }
  }
}

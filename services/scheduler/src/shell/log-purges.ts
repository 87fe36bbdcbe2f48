/**
 * Removes from LOGS what deleted runs have left there, one run after the other. What is not removed, because the broker is away or
 * too much waits, goes by its age: nobody can read it any more, since its run is in no list.
 */
import { backoffMs, withoutJitter, type Time } from '@penstock/async';
import type { RunId } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';

export interface LogPurgesDependencies {
  purge(runId: RunId): Promise<void>;
  readonly time: Pick<Time, 'pause'>;
  readonly log: Pick<Log, 'warn'>;
  readonly signal: AbortSignal;
}

/** Ids of 36 characters. */
const WAITING_MAX = 10_000;
const TRIES_MAX = 5;
const BACKOFF = { firstMs: 200, maxMs: 5_000, random: withoutJitter };

export class LogPurges {
  readonly #dependencies: LogPurgesDependencies;
  readonly #waiting: RunId[] = [];
  #isWorking = false;
  /** Runs whose chunks were left to their age, since this was told last. */
  #left = 0;

  constructor(dependencies: LogPurgesDependencies) {
    this.#dependencies = dependencies;
  }

  add(runIds: readonly RunId[]): void {
    const room = Math.max(0, WAITING_MAX - this.#waiting.length);
    this.#waiting.push(...runIds.slice(0, room));
    this.#left += Math.max(0, runIds.length - room);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    const { log, signal } = this.#dependencies;
    this.#isWorking = true;
    for (let runId = this.#waiting.shift(); runId !== undefined && !signal.aborted; runId = this.#waiting.shift())
      if (!(await this.#purge(runId))) this.#left += 1;
    this.#isWorking = false;
    if (this.#left === 0 || signal.aborted) return;
    log.warn({ runs: this.#left }, 'chunks of deleted runs could not be removed; they go by their age');
    this.#left = 0;
  }

  async #purge(runId: RunId): Promise<boolean> {
    const { purge, time, signal } = this.#dependencies;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await purge(runId);
        return true;
      } catch {
        if (attempt === TRIES_MAX) return false;
        await time.pause(backoffMs(attempt, BACKOFF), signal);
      }
    }
    return false;
  }
}

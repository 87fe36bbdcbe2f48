/**
 * Removes from LOGS what deleted runs have left there, one run after the other, tenant by tenant. What is not removed, because the broker
 * is away or too much of its tenant waits, goes by its age: nobody can read it any more, since its run is in no list.
 */
import { backoffMs, FairQueue, FairRoom, withoutJitter, type Time } from '@penstock/async';
import type { RunId } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';

export interface LogPurgesDependencies {
  purge(runId: RunId): Promise<void>;
  readonly time: Pick<Time, 'pause'>;
  readonly log: Pick<Log, 'warn'>;
  readonly signal: AbortSignal;
}

/** Ids of 36 characters. */
const WAITING = { shared: 10_000, own: 100 };
const TRIES_MAX = 5;
const BACKOFF = { firstMs: 200, maxMs: 5_000, random: withoutJitter };

/** A run that is deleted. */
export interface Deleted {
  readonly id: RunId;
  readonly tenant: string;
}

export class LogPurges {
  readonly #dependencies: LogPurgesDependencies;
  readonly #waiting = new FairQueue<Deleted>(Infinity, Infinity);
  readonly #room = new FairRoom(WAITING);
  #isWorking = false;
  /** Runs whose chunks were left to their age, since this was told last. */
  #left = 0;

  constructor(dependencies: LogPurgesDependencies) {
    this.#dependencies = dependencies;
  }

  add(runs: readonly Deleted[]): void {
    for (const run of runs)
      if (this.#room.take(run.tenant, 1)) this.#waiting.add(run.tenant, run);
      else this.#left += 1;
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    const { log, signal } = this.#dependencies;
    this.#isWorking = true;
    for (let run = this.#waiting.next(); run !== undefined && !signal.aborted; run = this.#waiting.next()) {
      this.#room.giveBack(run.tenant, 1);
      if (!(await this.#purge(run.id))) this.#left += 1;
    }
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

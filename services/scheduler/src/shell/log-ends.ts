/**
 * Closes the logs of attempts that have ended without a result (P21). Those of one run are closed together, so that its log
 * is read once for all of them; of several runs a few at a time, half of them of one key: its logs may be long.
 */
import { FairTurns } from '@penstock/async';
import type { RunId } from '@penstock/run';
import { guarded } from '@penstock/telemetry/borders';
import type { Log } from '@penstock/telemetry/log';
import type { AttemptLogRef } from '../run/ports.ts';
import type { SchedulerPorts } from './scheduler-ports.ts';

const RUNS_AT_ONCE = 8;
const RETRY_MS = 1_000;

interface Waiting {
  readonly log: AttemptLogRef;
  readonly stands: () => boolean;
  readonly closed: (sequence: number) => void;
}

export interface LogEndsOptions {
  readonly ports: Pick<SchedulerPorts, 'markLogEnds' | 'time'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Something has thrown that must not: whose logs are still to be closed cannot be told. */
  failed(error: unknown): void;
}

export class LogEnds {
  readonly #options: LogEndsOptions;
  /** Attempts that were under way bound what waits. */
  readonly #turns = new FairTurns({
    atOnce: RUNS_AT_ONCE,
    ofKeyAtOnce: RUNS_AT_ONCE / 2,
    waiting: { perKeyMax: Infinity, keysMax: Infinity, refusal: () => new Error('there is room for all') },
  });
  readonly #waiting = new Map<RunId, Waiting[]>();

  constructor(options: LogEndsOptions) {
    this.#options = options;
  }

  /**
   * Calls back with the sequence of the log's first mark; tried until it is stored, or never after the signal. Before each try
   * it is asked whether the end still stands: a loss that was declared while the broker went away does not, once it is back.
   */
  close(log: AttemptLogRef, stands: () => boolean, closed: (sequence: number) => void): void {
    const waiting = this.#waiting.get(log.runId);
    if (waiting !== undefined) {
      waiting.push({ log, stands, closed });
      return;
    }
    this.#waiting.set(log.runId, [{ log, stands, closed }]);
    const border = { log: this.#options.log, about: { runId: log.runId }, failed: this.#options.failed };
    guarded('partition.log-ends', border, () => this.#turns.run(log.key, () => this.#closeAll(log.runId)))();
  }

  async #closeAll(runId: RunId): Promise<void> {
    const { ports, log, signal } = this.#options;
    while (!signal.aborted) {
      const batch = (this.#waiting.get(runId) ?? []).filter(({ stands }) => stands());
      if (batch.length === 0) {
        this.#waiting.delete(runId);
        return;
      }
      this.#waiting.set(runId, [...batch]);
      try {
        const logs = batch.map((each) => each.log);
        const sequences = await ports.markLogEnds(runId, logs, signal);
        const later = (this.#waiting.get(runId) ?? []).slice(batch.length);
        if (later.length === 0) this.#waiting.delete(runId);
        else this.#waiting.set(runId, later);
        batch.forEach(({ closed }, index) => closed(sequences[index] ?? 0));
        if (later.length === 0) return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error, runId }, 'the log of a lost attempt could not be closed; trying again');
        await ports.time.pause(RETRY_MS, signal);
      }
    }
  }
}

/**
 * What the log says of deliveries that cannot be processed: that it began, now and then that it goes on, and that it is over. One user may
 * have a thousand lanes that fail for days.
 */
import type { Log } from '@penstock/telemetry/log';

interface Failing {
  /** The request that the delivery came with which is under way, or is tried again. */
  requestId: string | undefined;
  attempts: number;
  forMs: number;
  /** Undefined: nothing was said yet. */
  toldAtMs: number | undefined;
}

/** The first failures are a restart on the other side, mostly. */
const ATTEMPTS_UNTOLD = 2;
const TOLD_EVERY_MS = 60 * 60 * 1000;

export class FailingLanes {
  readonly #log: Pick<Log, 'info' | 'warn'>;
  readonly #lanes = new Map<string, Failing>();

  constructor(log: Pick<Log, 'info' | 'warn'>) {
    this.#log = log;
  }

  /** A delivery of a lane is tried. */
  tried(lane: string, requestId: string | undefined): void {
    const known = this.#lanes.get(lane);
    if (known === undefined) this.#lanes.set(lane, { requestId, attempts: 0, forMs: 0, toldAtMs: undefined });
    else known.requestId = requestId;
  }

  /** See `LanesOptions`. */
  failed(lane: string, error: unknown, attempt: number, forMs: number): void {
    const failing = this.#lanes.get(lane) ?? { requestId: undefined, attempts: 0, forMs, toldAtMs: undefined };
    this.#lanes.set(lane, failing);
    Object.assign(failing, { attempts: attempt, forMs });
    const { requestId, toldAtMs } = failing;
    const isToBeTold = toldAtMs === undefined ? attempt > ATTEMPTS_UNTOLD : forMs - toldAtMs >= TOLD_EVERY_MS;
    if (!isToBeTold) return;
    failing.toldAtMs = forMs;
    this.#log.warn(
      { err: error, lane, attempt, requestId, failingForSecs: Math.round(forMs / 1000) },
      toldAtMs === undefined
        ? 'a delivery could not be processed; tried again'
        : 'a delivery still cannot be processed; tried again',
    );
  }

  /** It was processed, or there is none any more. */
  done(lane: string): void {
    const failing = this.#lanes.get(lane);
    this.#lanes.delete(lane);
    if (failing?.toldAtMs === undefined) return;
    const { requestId, attempts, forMs } = failing;
    this.#log.info(
      { lane, attempts, requestId, failedForSecs: Math.round(forMs / 1000) },
      'a delivery that could not be processed is processed',
    );
  }
}

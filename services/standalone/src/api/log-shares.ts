/**
 * How much of `LOGS` the runners of each tenant have filled since this process began, by run, so that what has been archived or deleted
 * counts no more. Bounded in memory by the runs whose logs are there.
 */
import type { LoggedRuns } from '@penstock/bus';

interface Stored {
  bytes: number;
  /** When the last of it was stored. */
  at: number;
}

interface Share {
  bytes: number;
  readonly runs: Map<string, Stored>;
}

/** Of `LOGS`: of one tenant, and of all of them. */
const TENANT_SHARE = 1 / 16;
const TENANTS_SHARE = 1 / 2;
/** What was stored so lately may not be told of yet. */
const RECENT_MS = 30_000;
/** Runs in memory before it is looked up which are still stored. */
const RUNS_MAX = 20_000;

export class LogShares {
  readonly #logsBytesMax: number;
  readonly #now: () => number;
  readonly #shares = new Map<string, Share>();
  #bytes = 0;
  #runs = 0;
  #isShort = false;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(logsBytesMax: number, now: () => number = () => performance.now()) {
    this.#logsBytesMax = logsBytesMax;
    this.#now = now;
  }

  /** Whether it is to be looked up what is still stored. */
  get isShort(): boolean {
    return this.#isShort || this.#runs > RUNS_MAX;
  }

  /** False: it is too much, until some of it is gone. */
  take(tenant: string, runId: string, bytes: number): boolean {
    const share = this.#shares.get(tenant) ?? { bytes: 0, runs: new Map<string, Stored>() };
    const isTooMuch =
      share.bytes + bytes > this.#logsBytesMax * TENANT_SHARE ||
      this.#bytes + bytes > this.#logsBytesMax * TENANTS_SHARE;
    if (isTooMuch) {
      this.#isShort = true;
      return false;
    }
    const run = share.runs.get(runId);
    if (run === undefined) this.#runs += 1;
    share.runs.set(runId, { bytes: (run?.bytes ?? 0) + bytes, at: this.#now() });
    share.bytes += bytes;
    this.#bytes += bytes;
    this.#shares.set(tenant, share);
    return true;
  }

  /** Of what was taken: it was not stored. */
  giveBack(tenant: string, runId: string, bytes: number): void {
    const share = this.#shares.get(tenant);
    const run = share?.runs.get(runId);
    // What a look has found to be gone is given back already.
    if (share === undefined || run === undefined) return;
    run.bytes -= bytes;
    share.bytes -= bytes;
    this.#bytes -= bytes;
  }

  /** What a run that was not looked at has counts on. */
  stillThere({ runs, spans }: Pick<LoggedRuns, 'runs' | 'spans'>): void {
    this.#isShort = false;
    const now = this.#now();
    const named = new Set(runs.map(({ runId }) => runId));
    const isGone = (run: string): boolean => !named.has(run) && spans.some(([from, to]) => from <= run && run <= to);
    for (const [tenant, share] of this.#shares) {
      for (const [runId, { bytes, at }] of share.runs) {
        if (now - at < RECENT_MS || !isGone(runId)) continue;
        share.runs.delete(runId);
        share.bytes -= bytes;
        this.#bytes -= bytes;
        this.#runs -= 1;
      }
      if (share.runs.size === 0) this.#shares.delete(tenant);
    }
  }
}

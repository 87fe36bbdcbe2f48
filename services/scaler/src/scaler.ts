/**
 * As many runners as what waits and what runs needs: more at once, fewer only when fewer would have done for a while.
 *
 *  SCALER-1 Without a figure nothing changes: a Prometheus that is away, or scrapes nothing, ends no runner.
 *  SCALER-2 There are never fewer than any look of the last cooldown wanted, and those that are there at its first look, or the
 *     first after one that failed, count as wanted then.
 *  SCALER-3 There are never more than `max`, and never fewer than `min`.
 */
import type { ScaleTarget } from '@penstock/executor-kubernetes';
import type { Log } from '@penstock/telemetry/log';

export interface ScalerOptions {
  readonly target: ScaleTarget;
  /** Stages that wait or run. Throws, with the reason as its message, where it cannot be said. */
  readonly demand: () => Promise<number>;
  /** Of one runner. */
  readonly slots: number;
  readonly min: number;
  readonly max: number;
  readonly cooldownMs: number;
  readonly log: Log;
  /** Of a clock that nobody sets. */
  readonly now?: (() => number) | undefined;
}

interface Look {
  readonly at: number;
  readonly wanted: number;
}

export class Scaler {
  readonly #options: ScalerOptions;
  readonly #now: () => number;
  /** Newer ones want less. */
  #looks: Look[] | undefined;
  #problem: string | undefined = 'nothing was looked at yet';

  constructor(options: ScalerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Why the last look came to nothing; undefined: it did not. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Looks, and says how many there are to be where that is another number. Never throws. */
  async look(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#look();
      if (this.#problem !== undefined) log.info({}, 'runners are scaled by what waits');
      this.#problem = undefined;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem) log.warn({ problem }, 'runners stay as many as they are');
      this.#problem = problem;
      // What was wanted meanwhile is not known: those that are there then count as wanted again.
      this.#looks = undefined;
    }
  }

  async #look(): Promise<void> {
    const { target, demand, slots, min, max, log } = this.#options;
    const there = await target.read();
    this.#looks ??= [{ at: this.#now(), wanted: there }];
    const waiting = await demand();
    const wanted = this.#wantedOf(Math.ceil(Math.max(0, waiting) / slots));
    const replicas = Math.min(max, Math.max(min, wanted));
    if (replicas === there) return;
    await target.write(replicas);
    log.info({ from: there, to: replicas, stages: waiting }, 'another number of runners');
  }

  /** The most of the last cooldown. */
  #wantedOf(now: number): number {
    const at = this.#now();
    const looks = (this.#looks ?? []).filter((look) => look.wanted > now && at - look.at < this.#options.cooldownMs);
    this.#looks = [...looks, { at, wanted: now }];
    return this.#looks[0]?.wanted ?? now;
  }
}

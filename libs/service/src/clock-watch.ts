/**
 * Says that the clock of this machine and the broker's differ, which nobody sees otherwise: a token is refused without a reason, a
 * run's id lies ahead, files are gone before their time, and each process by itself looks sound. Nothing is decided by it.
 */
import type { ClockDifference } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';

export interface ClockWatchOptions {
  /** Null: it is not known now. */
  readonly ask: () => Promise<ClockDifference | null>;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly meter: Meter;
}

const LOOK_MS = 60_000;
/** The streams may not be there yet. */
const FIRST_LOOKS_MS = 5_000;
/** Two machines may be off in opposite directions, and an access token is taken 10 s before its time. */
const TOLD_MS = 5_000;

export class ClockWatch {
  readonly #options: ClockWatchOptions;
  #known: ClockDifference | undefined;
  /** The difference that was told of last; 0: none, or that it is over. */
  #toldMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  start(): void {
    void this.look().finally(() => {
      if (this.#stopped) return;
      this.#timer = setTimeout(() => this.start(), this.#known === undefined ? FIRST_LOOKS_MS : LOOK_MS).unref();
    });
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async look(): Promise<void> {
    try {
      const found = await this.#options.ask();
      if (found === null || this.#stopped) return;
      // Before, there would be a figure, and it would be 0.
      if (this.#known === undefined)
        this.#options.meter.gauge('penstock_clock_ahead_seconds', () => [{ labels: {}, value: this.#aheadSecs }]);
      this.#known = found;
      this.#tell(found);
    } catch {
      // A broker that is away is told of elsewhere; the next look finds it.
    }
  }

  get #aheadSecs(): number {
    return (this.#known?.aheadMs ?? 0) / 1000;
  }

  #tell({ aheadMs, withinMs }: ClockDifference): void {
    const { log } = this.#options;
    const isOff = Math.abs(aheadMs) - withinMs >= TOLD_MS;
    const isOver = Math.abs(aheadMs) + withinMs < TOLD_MS;
    // What was told and is still so is not told again, nor is what a slow answer leaves open.
    if (isOff ? Math.abs(aheadMs - this.#toldMs) - withinMs < TOLD_MS : this.#toldMs === 0 || !isOver) return;
    this.#toldMs = isOff ? aheadMs : 0;
    const aheadSecs = Math.round(aheadMs / 1000);
    if (!isOff) return log.info({ aheadSecs }, "the clock of this machine and the broker's agree again");
    log.warn(
      { aheadSecs },
      `the clock of this machine is ${Math.abs(aheadSecs)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the broker's: set both right (NTP); ` +
        'logins, ids of runs, schedules and what expires go by it',
    );
  }
}

/**
 * When the waits of a run's stages began, by this machine's boot clock. The run's own times are wall times, which an operator or a
 * time server may set at any moment: they are shown and journaled, and looked at here only at a take-over (P5).
 */
import { timerOf, type Plan, type RunEvent, type RunSettings, type RunState } from '@penstock/run';

/** Times that a stage has here: since when it waits for a runner, and since when for its next attempt or the end of one. */
const TIMES = 2;
const QUEUE = 0;
const OTHER = 1;

export class StageTimes {
  /** By stage, `TIMES` each. Not a number: nothing has begun. */
  readonly #since: number[];
  readonly #plan: Plan;
  readonly #settings: RunSettings;

  constructor(plan: Plan, settings: RunSettings) {
    this.#plan = plan;
    this.#settings = settings;
    this.#since = Array.from({ length: plan.stages.length * TIMES }, () => Number.NaN);
  }

  /** These events were decided just now. */
  happened(events: readonly RunEvent[], boot: number): void {
    for (const event of events) {
      if (event.type === 'stages_queued') for (const stage of event.stages) this.#begin(stage, QUEUE, boot);
      else if (event.type === 'stage_started' || event.type === 'stage_retrying') this.#begin(event.stage, OTHER, boot);
    }
  }

  /**
   * Takes over what an earlier owner has journaled, whose clock may have been another. A wait is as old as the wall clock says
   * now, never younger than new and never older than it lasts.
   */
  restore(run: RunState, now: { readonly wall: number; readonly boot: number }): void {
    for (const { index, definition } of this.#plan.stages) {
      const stage = run.stages[index];
      if (stage === undefined) continue;
      const timer = timerOf(run, stage, definition, this.#settings);
      // One that is granted may come back to the queue, in which it has waited for longer.
      if (stage.queuedAt !== undefined)
        this.#since[index * TIMES + QUEUE] = now.boot - ageOf(stage.queuedAt, this.#settings.queueTimeoutMs, now.wall);
      if (timer !== undefined && timer.kind !== 'queue')
        this.#since[index * TIMES + OTHER] = now.boot - ageOf(timer.since, timer.lengthMs, now.wall);
    }
  }

  /** The stages whose wait is over. */
  due(run: RunState, boot: number): string[] {
    const due: string[] = [];
    this.#eachDeadline(run, (stage, at) => {
      if (at <= boot) due.push(stage);
    });
    return due;
  }

  /** When the first wait is over; undefined: nothing of the run is timed. */
  next(run: RunState): number | undefined {
    let earliest: number | undefined;
    this.#eachDeadline(run, (_, at) => {
      if (earliest === undefined || at < earliest) earliest = at;
    });
    return earliest;
  }

  #eachDeadline(run: RunState, each: (stage: string, at: number) => void): void {
    run.stages.forEach((stage, index) => {
      const planned = this.#plan.stages[index];
      const timer = planned && timerOf(run, stage, planned.definition, this.#settings);
      if (timer === undefined) return;
      const since = this.#since[index * TIMES + (timer.kind === 'queue' ? QUEUE : OTHER)] ?? Number.NaN;
      if (!Number.isNaN(since)) each(stage.name, since + timer.lengthMs);
    });
  }

  #begin(stage: string, wait: number, boot: number): void {
    const index = this.#plan.indexOf.get(stage);
    if (index !== undefined) this.#since[index * TIMES + wait] = boot;
  }
}

function ageOf(since: number, lengthMs: number, now: number): number {
  return Math.min(Math.max(0, now - since), lengthMs);
}

/**
 * When the waits of a run's stages began, by this machine's boot clock. The run's own times are wall times, which an operator or a
 * time server may set at any moment: they are shown and journaled, and looked at here only at a take-over (P5).
 */
import { timerOf, type Plan, type RunEvent, type RunSettings, type RunState, type StageTimer } from '@penstock/run';

export interface WaitSettings extends RunSettings {
  /** By the boot clock, since when stages like these wait for a runner at the earliest: they were held up until then. */
  heldUntil?(stage: { readonly key: string; readonly labels: readonly string[] }): number | undefined;
}

export class StageTimes {
  /** By stage, not a number where there is none; made when there is something to say: most stages of a large run only ever wait for a runner at first. */
  #queued: number[] | undefined;
  /** Since when it waits for its next attempt, or for the end of one. */
  #other: number[] | undefined;
  readonly #settings: WaitSettings;

  constructor(settings: WaitSettings) {
    this.#settings = settings;
  }

  /** These events were decided just now. */
  happened({ stages: { plan } }: RunState, events: readonly RunEvent[], boot: number): void {
    for (const event of events) {
      if (event.type === 'stages_queued' || event.type === 'gates_queued')
        for (const stage of event.stages) begin((this.#queued ??= noTimes(plan)), plan, stage, boot);
      else if (event.type === 'stage_started' || event.type === 'stage_retrying')
        begin((this.#other ??= noTimes(plan)), plan, event.stage, boot);
    }
  }

  /**
   * Takes over what an earlier owner has journaled, whose clock may have been another. A wait is as old as the wall clock says
   * now, never younger than new and never older than it lasts.
   */
  restore(run: RunState, now: { readonly wall: number; readonly boot: number }): void {
    for (const { index, definition } of run.stages.plan.stages) {
      const stage = run.stages.get(index);
      if (stage === undefined) continue;
      const timer = timerOf(run, stage, definition, this.#settings);
      // One that is granted may come back to the queue, in which it has waited for longer.
      if (stage.queuedAt !== undefined) {
        const lengthMs = timer?.kind === 'gate' ? timer.lengthMs : this.#settings.queueTimeoutMs;
        (this.#queued ??= noTimes(run.stages.plan))[index] = now.boot - ageOf(stage.queuedAt, lengthMs, now.wall);
      }
      if (timer !== undefined && timer.kind !== 'queue' && timer.kind !== 'gate')
        (this.#other ??= noTimes(run.stages.plan))[index] = now.boot - ageOf(timer.since, timer.lengthMs, now.wall);
    }
  }

  /** Of a run of which no stage was granted yet: its stages wait for a runner until then, whatever the wall clock says now. */
  restoreQueued(run: RunState, dueAt: number): void {
    for (const { index } of run.stages.plan.stages)
      if (run.stages.statusOf(index) === 'QUEUED')
        (this.#queued ??= noTimes(run.stages.plan))[index] = dueAt - this.#settings.queueTimeoutMs;
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
    for (const planned of run.stages.plan.stages) {
      const { index, definition } = planned;
      const stage = run.stages.get(index);
      const timer = stage && timerOf(run, stage, definition, this.#settings);
      if (timer === undefined) continue;
      const since = this.#since(timer, index);
      if (since === undefined || Number.isNaN(since)) continue;
      const held = timer.kind === 'queue' ? this.#heldUntil(run, planned) : undefined;
      each(definition.name, Math.max(since, held ?? since) + timer.lengthMs);
    }
  }

  #heldUntil({ key, origin }: RunState, { wanted }: Plan['stages'][number]): number | undefined {
    const { labels } = origin.trusted === false ? wanted.untrusted : wanted.trusted;
    return this.#settings.heldUntil?.({ key, labels });
  }

  #since({ kind }: StageTimer, index: number): number | undefined {
    return (kind === 'queue' || kind === 'gate' ? this.#queued : this.#other)?.[index];
  }
}

/** With room for no more stages than there are. */
function noTimes({ stages }: Plan): number[] {
  return Array.from({ length: stages.length }, () => Number.NaN);
}

function begin(times: number[], { indexOf }: Plan, stage: string, boot: number): void {
  const index = indexOf.get(stage);
  if (index !== undefined) times[index] = boot;
}

/** By the boot clock, until when stages wait for a runner that have waited since then by the wall clock. */
export function queueDeadline(
  queuedAt: number,
  { queueTimeoutMs }: RunSettings,
  now: { readonly wall: number; readonly boot: number },
): number {
  return now.boot + queueTimeoutMs - ageOf(queuedAt, queueTimeoutMs, now.wall);
}

function ageOf(since: number, lengthMs: number, now: number): number {
  return Math.min(Math.max(0, now - since), lengthMs);
}

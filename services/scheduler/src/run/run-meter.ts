/** Counts what is committed of runs: their ends, and how long their stages waited and ran. By the journal's times: a clock that was set back counts as no time. */
import { triggerOf, verdictOf, type RunEvent, type RunStatus, type StageState, type Version } from '@penstock/run';
import type { Meter } from '@penstock/telemetry/metrics';
import type { CommittedPart } from './ports.ts';

type CountedRun = CommittedPart['run'];

export class RunMeter {
  readonly #meter: Meter;

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  committed({ run, from, to }: CommittedPart): void {
    for (let version = from; version <= to; version += 1) {
      const event = run.events[version - 1];
      if (event !== undefined) this.#count(run, version, event);
    }
  }

  #count(run: CountedRun, version: Version, event: RunEvent): void {
    switch (event.type) {
      case 'run_admitted': {
        const held = lastHeld(run, version);
        this.#waited(held?.reason === 'quota' ? 'quota' : 'concurrency', held?.at, event.at);
        break;
      }
      case 'stage_started':
        if (event.again !== true) this.#waited('runner', stageOf(run, event.stage)?.queuedAt, event.at);
        break;
      case 'stage_retrying':
        this.#waited('backoff', event.at, event.dueAt);
        break;
      case 'stage_completed': {
        const stage = stageOf(run, event.stage);
        this.#meter.add('penstock_stages_total', { status: event.status, reason: event.reason ?? 'none' });
        if (isGate(run, event.stage)) this.#waited('approval', stage?.queuedAt, event.at);
        else if (stage?.startedAt !== undefined)
          this.#meter.observe('penstock_stage_duration_seconds', {}, (event.at - stage.startedAt) / 1_000);
        break;
      }
      case 'stage_skipped':
        this.#meter.add('penstock_stages_total', { status: 'SKIPPED', reason: event.reason });
        break;
      case 'stages_skipped':
        this.#meter.add('penstock_stages_total', { status: 'SKIPPED', reason: event.reason }, event.stages.length);
        break;
      case 'run_cancelled':
        if (event.cancelledStages > 0)
          this.#meter.add('penstock_stages_total', { status: 'CANCELLED', reason: 'cancelled' }, event.cancelledStages);
        this.#ended(run, 'CANCELLED', event.at);
        break;
      case 'run_completed':
        this.#ended(run, event.status, event.at);
        break;
      case 'run_quarantined':
        this.#ended(run, 'FAILED', event.at);
        break;
      default:
    }
  }

  #waited(kind: string, since: number | undefined, at: number): void {
    if (since !== undefined) this.#meter.observe('penstock_stage_wait_seconds', { kind }, (at - since) / 1_000);
  }

  #ended(run: CountedRun, status: RunStatus, at: number): void {
    const verdict = verdictOf(run.state, run.state.stages.touched()) ?? 'none';
    this.#meter.add('penstock_runs_total', { status, verdict, trigger: triggerOf(run.state.origin) });
    const [created] = run.events;
    if (created !== undefined) this.#meter.observe('penstock_run_duration_seconds', {}, (at - created.at) / 1_000);
  }
}

function stageOf(run: CountedRun, name: string): Readonly<StageState> | undefined {
  return run.state.stages.get(run.plan.indexOf.get(name) ?? -1);
}

function isGate(run: CountedRun, name: string): boolean {
  return run.plan.stages[run.plan.indexOf.get(name) ?? -1]?.definition.approval !== undefined;
}

function lastHeld(run: CountedRun, before: Version): Extract<RunEvent, { readonly type: 'run_held' }> | undefined {
  for (let version = before - 1; version >= 1; version -= 1) {
    const event = run.events[version - 1];
    if (event?.type === 'run_held') return event;
  }
  return undefined;
}

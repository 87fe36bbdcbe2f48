/**
 * Tells the log what is committed of runs, at its level `debug`: a busy scheduler commits thousands of events a second. Each line
 * names the request that the run came from.
 */
import type { RunEvent } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import type { CommittedPart } from './ports.ts';

type ToldRun = Pick<CommittedPart['run'], 'state'>;

/** What every line about a run has. */
export function runFields({ state: { id, origin } }: ToldRun): Readonly<Record<string, unknown>> {
  return origin.requestId === undefined ? { runId: id } : { runId: id, requestId: origin.requestId };
}

export class RunLog {
  readonly #log: Pick<Log, 'debug'>;

  constructor(log: Pick<Log, 'debug'>) {
    this.#log = log;
  }

  committed({ run, from, to }: CommittedPart): void {
    for (let version = from; version <= to; version += 1) {
      const event = run.events[version - 1];
      if (event !== undefined) this.#tell(run, event);
    }
  }

  #tell(run: ToldRun, event: RunEvent): void {
    const line = lineOf(event);
    if (line !== undefined) this.#log.debug({ ...runFields(run), ...line.fields }, line.message);
  }
}

/** Undefined: of no use to who follows a run. */
function lineOf(event: RunEvent): { readonly message: string; readonly fields?: Record<string, unknown> } | undefined {
  switch (event.type) {
    case 'run_created':
      return { message: 'a run is accepted', fields: { pipelineName: event.pipelineName } };
    case 'run_held':
      return { message: 'a run is held', fields: { reason: event.reason } };
    case 'run_admitted':
      return { message: 'a run is admitted' };
    case 'stage_started':
      return {
        message: 'a stage is granted',
        fields: { stage: event.stage, attempt: event.attempt, runner: event.runner, session: event.session },
      };
    case 'stage_returned':
      return { message: 'a grant came to nothing', fields: { stage: event.stage, attempt: event.attempt } };
    case 'stage_retrying':
      return {
        message: 'an attempt has failed, and another follows',
        fields: { stage: event.stage, attempt: event.attempt, reason: event.reason },
      };
    case 'stage_completed':
      return {
        message: 'a stage has ended',
        fields: { stage: event.stage, attempt: event.attempt, status: event.status, reason: event.reason },
      };
    case 'run_cancelled':
      return { message: 'a run is cancelled' };
    case 'run_completed':
      return { message: 'a run has ended', fields: { status: event.status, reason: event.reason } };
    case 'run_quarantined':
      return { message: 'a run is quarantined' };
    default:
      return undefined;
  }
}

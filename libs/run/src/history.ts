/** What a run's events tell about its past: how it stood after one of them, what each says, and its attempts one by one. */
import type { PipelineDefinition } from '@penstock/pipeline';
import { assertNever, RunInvariantError } from './errors.ts';
import { evolve, newRun } from './evolve.ts';
import type { RunEvent } from './events.ts';
import { planOf } from './plan.ts';
import { isoTime, viewOf } from './projection.ts';
import type { RunId } from './brands.ts';
import type { StageReason } from './stage-state.ts';
import type { RunView, StageView } from './state.ts';
import { unfinished } from './verdict.ts';

/** One execution of a stage. */
export interface AttemptView {
  /** From 1; what never ran is no attempt. */
  readonly number: number;
  readonly runner: string;
  readonly status: 'RUNNING' | 'SUCCESS' | 'FAILED' | 'CANCELLED';
  readonly reason: StageReason | null;
  readonly exitCode: number | null;
  /** ISO 8601 in UTC with milliseconds. */
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** From the time that it could be granted to its grant. */
  readonly queuedMs: number;
  /** Of its log, as its runner has counted them; null where nobody has. */
  readonly logBytes: number | null;
}

export interface EventView {
  /** Of the run after this event; the first has 1. */
  readonly version: number;
  readonly type: RunEvent['type'];
  /** ISO 8601 in UTC with milliseconds. */
  readonly at: string;
  readonly stage: string | null;
  readonly attempt: number | null;
  /** A sentence for a person. */
  readonly summary: string;
  /** JSON of the event without addresses, sessions and manifests, and the file only for those whose run it is. */
  readonly data: string;
}

/** What became of a stage from one run to another. */
type StageChange = 'same' | 'fixed' | 'broken' | 'changed' | 'added' | 'removed';

export interface StageComparison {
  readonly stage: string;
  readonly change: StageChange;
  /** Null where that run has no such stage. */
  readonly a: StageView | null;
  readonly b: StageView | null;
}

/** The run as it was served after its first `version` events, 1 or more. */
export function viewAt(
  id: RunId,
  definition: PipelineDefinition,
  events: readonly RunEvent[],
  version: number,
): RunView {
  const [created, ...others] = events.slice(0, version);
  if (created?.type !== 'run_created' || others.length !== version - 1)
    throw new RunInvariantError(id, `it has no version ${version}`);
  const run = newRun(id, created, planOf(definition));
  for (const event of others) evolve(run, event);
  return viewOf(run);
}

/** By stage, the oldest first. Stages that never started have none. */
export function attemptsOf(events: readonly RunEvent[]): ReadonlyMap<string, readonly AttemptView[]> {
  const attempts = new Map<string, AttemptView[]>();
  const queuedAt = new Map<string, number>();
  const open = new Map<string, { readonly grant: number; readonly view: AttemptView }>();
  const close = (stage: string, grant: number, end: Partial<AttemptView>): void => {
    const last = open.get(stage);
    if (last?.grant !== grant) return;
    open.delete(stage);
    const ended = { ...last.view, ...end };
    const before = attempts.get(stage);
    if (before === undefined) attempts.set(stage, [ended]);
    else before.push(ended);
  };
  for (const event of events) {
    switch (event.type) {
      case 'stages_queued':
        for (const stage of event.stages) queuedAt.set(stage, event.at);
        break;
      case 'stage_started': {
        const { stage, attempt, number = attempt, runner, at } = event;
        const queuedMs = Math.max(0, at - (queuedAt.get(stage) ?? at));
        const view = { number, runner, startedAt: isoTime(at), queuedMs, ...UNFINISHED };
        open.set(stage, { grant: attempt, view });
        break;
      }
      case 'stage_returned':
        open.delete(event.stage);
        break;
      case 'stage_retrying':
      case 'stage_completed':
      case 'attempt_gone':
        close(event.stage, event.attempt, endOf(event));
        break;
      default:
    }
  }
  for (const [stage, { view }] of open) attempts.set(stage, [...(attempts.get(stage) ?? []), view]);
  return attempts;
}

const UNFINISHED = { status: 'RUNNING', reason: null, exitCode: null, finishedAt: null, logBytes: null } as const;

function endOf(
  event: Extract<RunEvent, { readonly type: 'stage_retrying' | 'stage_completed' | 'attempt_gone' }>,
): Partial<AttemptView> {
  const end = { finishedAt: isoTime(event.at), logBytes: event.logBytes ?? null };
  if (event.type === 'attempt_gone') return { ...end, status: 'CANCELLED', reason: 'cancelled' };
  const { reason = null, exitCode = null } = event;
  return { ...end, status: event.type === 'stage_retrying' ? 'FAILED' : event.status, reason, exitCode };
}

/** `hasFile`: whether who asks is to see the text of the file, and what its `env` holds, not only what became of it. */
export function eventViewOf(version: number, event: RunEvent, hasFile: boolean): EventView {
  const attempt = 'attempt' in event ? ('number' in event ? (event.number ?? event.attempt) : event.attempt) : null;
  return {
    version,
    type: event.type,
    at: isoTime(event.at),
    stage: 'stage' in event ? event.stage : null,
    attempt,
    summary: summaryOfEvent(event, attempt),
    data: JSON.stringify(shownOf(event, hasFile)),
  };
}

/** Without what names a session or an address, and without manifests: those are texts of the registry. */
function shownOf(event: RunEvent, hasFile: boolean): object {
  if (event.type === 'stage_started') {
    const { session: _session, credit: _credit, ...shown } = event;
    return shown;
  }
  if (event.type === 'gate_decided') {
    const { person: _person, ...shown } = event;
    return shown;
  }
  if (event.type === 'stages_added' && !hasFile) {
    const { text: _text, ...shown } = event;
    return shown;
  }
  if (event.type !== 'run_created') return event;
  const { cloneUrl: _cloneUrl, ...origin } = event.origin;
  const { yaml, ...created } = event;
  return {
    ...created,
    ...(hasFile ? { yaml } : {}),
    origin,
    ...(event.extensions === undefined
      ? {}
      : { extensions: event.extensions.map(({ uses, id, version, hash }) => ({ uses, id, version, hash })) }),
  };
}

const NAMES_MAX = 5;

function summaryOfEvent(event: RunEvent, attempt: number | null): string {
  switch (event.type) {
    case 'run_created':
      return `the run of '${event.pipelineName}' was created${event.lineage === undefined ? '' : ` from the run ${event.lineage.parent}`}${event.held === undefined ? '' : ', and waits for an approval'}`;
    case 'stages_adopted': {
      const names = event.adopted.map(({ stage }) => stage);
      return `${namesOf(names)} ${names.length === 1 ? 'stands' : 'stand'} as in the run that this one repeats`;
    }
    case 'run_approved':
      return `the run was approved by ${event.by}`;
    case 'run_held':
      return event.reason === 'group'
        ? 'the run waits for its turn in its group'
        : 'the run waits for a place under its quota';
    case 'run_admitted':
      return 'the run goes on';
    case 'run_rested':
      return 'only gates of the run are open: its place is free';
    case 'gates_queued':
      return `${namesOf(event.stages)} ${event.stages.length === 1 ? 'waits' : 'wait'} for approval until ${isoTime(event.dueAt)}`;
    case 'gate_decided':
      return `'${event.stage}' was ${event.decision} by ${event.by} (${event.approved} of ${event.quorum})`;
    case 'stages_queued':
      return `${namesOf(event.stages)} ${event.stages.length === 1 ? 'waits' : 'wait'} for a runner`;
    case 'stage_started':
      return `'${event.stage}' was given to the runner ${event.runner} (attempt ${attempt})`;
    case 'stage_returned':
      return `'${event.stage}' waits again: its runner did not take it`;
    case 'stage_stopping':
      return `'${event.stage}' is being stopped (${event.reason})`;
    case 'stage_retrying':
      return `'${event.stage}' failed (${event.reason}) and is tried again at ${isoTime(event.dueAt)}`;
    case 'stage_completed':
      return `'${event.stage}' ended ${event.status}${event.reason === undefined ? '' : ` (${event.reason})`}`;
    case 'stages_added':
      return `'${event.stage}' added ${event.stages.length === 1 ? 'a stage' : `${event.stages.length} stages`}: ${namesOf(event.stages)}`;
    case 'stage_skipped':
      return `'${event.stage}' was skipped (${event.reason})`;
    case 'stages_skipped':
      return `${namesOf(event.stages)} ${event.stages.length === 1 ? 'was' : 'were'} skipped (${event.reason})`;
    case 'attempt_gone':
      return `no process of '${event.stage}' is left`;
    case 'workspace_lost':
      return `the working folder on the runner ${event.runner} is gone`;
    case 'run_cancelled':
      return `the run was cancelled with ${unfinished(event.cancelledStages)}`;
    case 'run_completed':
      return `the run ended ${event.status}${event.reason === undefined ? '' : ` (${event.reason})`}`;
    case 'run_quarantined':
      return 'the engine could not go on with the run';
    case 'run_stopped':
      return 'all processes of the run are gone';
    default:
      return assertNever(event);
  }
}

function namesOf(stages: readonly string[]): string {
  const shown = stages.slice(0, NAMES_MAX).map((name) => `'${name}'`);
  const more = stages.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

/** In the order of `b`, then what only `a` has. */
export function compareViews(a: RunView, b: RunView): StageComparison[] {
  const before = new Map(a.stages.map((stage) => [stage.name, stage]));
  const after = new Set(b.stages.map(({ name }) => name));
  return [
    ...b.stages.map((stage): StageComparison => {
      const old = before.get(stage.name) ?? null;
      return {
        stage: stage.name,
        change: old === null ? 'added' : changeOf(old.status, stage.status),
        a: old,
        b: stage,
      };
    }),
    ...a.stages
      .filter(({ name }) => !after.has(name))
      .map((stage): StageComparison => ({ stage: stage.name, change: 'removed', a: stage, b: null })),
  ];
}

function changeOf(before: StageView['status'], after: StageView['status']): StageChange {
  if (before === after) return 'same';
  if (after === 'SUCCESS' && before === 'FAILED') return 'fixed';
  return after === 'FAILED' && before === 'SUCCESS' ? 'broken' : 'changed';
}

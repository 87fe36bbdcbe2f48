/**
 * What outgoing webhooks tell of a run (P35): which of its events are told, and as what. Each is told with the run as it stood
 * right after that event, whatever has happened since.
 */
import type { RunEvent } from './events.ts';
import { isoTime, viewOf } from './projection.ts';
import { endsRun } from './public-events.ts';
import type { RunState, RunView, StageView } from './state.ts';
import { judge, type Judgement } from './verdict.ts';

export const ANNOUNCEMENT_TYPES = ['run.started', 'run.completed', 'stage.completed', 'approval.requested'] as const;
export type AnnouncementType = (typeof ANNOUNCEMENT_TYPES)[number];

export interface Announcement {
  readonly type: AnnouncementType;
  /** Of the run after the event: no two announcements of a run have the same. */
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The full names of the stages that it is about; absent: all of the run's. */
  readonly stages?: readonly string[] | undefined;
}

/** The run as `PipelineRun` of the API shows it, but for its stages. */
interface AnnouncedRun {
  readonly id: string;
  readonly pipelineName: string;
  readonly status: RunView['status'];
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly outcome: RunView['outcome'];
  readonly reason: RunView['reason'];
  /** As its own events say; null until it has ended. Other runs of its commit are not looked at. */
  readonly verdict: Judgement['verdict'] | null;
  readonly verdictEvidence: readonly string[];
  readonly trigger: string | null;
  readonly trusted: boolean;
  readonly actor: string | null;
  readonly provider: string | null;
  readonly repository: string | null;
  readonly ref: string | null;
  readonly commit: string | null;
  readonly source: string | null;
  readonly parentRunId: string | null;
  readonly rootRunId: string | null;
  readonly inputs: readonly { readonly key: string; readonly value: string }[];
}

/** As `StageRun` of the API. */
interface AnnouncedStage {
  readonly name: string;
  readonly status: StageView['status'];
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly reason: StageView['reason'];
  readonly exitCode: number | null;
  readonly attempt: number;
  readonly outputs: readonly { readonly key: string; readonly value: string }[];
}

/** What a receiver is sent. */
export interface AnnouncementBody {
  readonly type: AnnouncementType;
  /** When it happened; ISO 8601 in UTC with milliseconds. */
  readonly timestamp: string;
  readonly data: {
    readonly version: number;
    readonly run: AnnouncedRun;
    readonly stages: readonly AnnouncedStage[];
    /** How many of the stages are not told for want of room; absent: none. */
    readonly stagesLeftOut?: number | undefined;
  };
}

/** Of a body as JSON: a receiver holds it in memory, and so does the outbox. What does not fit is left out, stage by stage. */
const BODY_CHARACTERS_MAX = 128 * 1024;

/** Of the events behind the first `after`. */
export function announcementsIn(events: readonly RunEvent[], after: number): Announcement[] {
  const found: Announcement[] = [];
  for (let index = after; index < events.length; index++) {
    const event = events[index];
    const told = event === undefined ? undefined : toldOf(event);
    if (event !== undefined && told !== undefined) found.push({ ...told, version: index + 1, at: event.at });
  }
  return found;
}

function toldOf(event: RunEvent): Pick<Announcement, 'type' | 'stages'> | undefined {
  switch (event.type) {
    case 'run_created':
      // It goes on once somebody has approved it.
      return event.held === undefined ? { type: 'run.started' } : { type: 'approval.requested', stages: [] };
    case 'run_approved':
      return { type: 'run.started' };
    case 'gates_queued':
      return { type: 'approval.requested', stages: event.stages };
    case 'stage_completed':
      return { type: 'stage.completed', stages: [event.stage] };
    default:
      return endsRun(event) ? { type: 'run.completed' } : undefined;
  }
}

/** `state` is what the events up to the announcement's make. */
export function announcementBody(
  { type, at, version, stages: named }: Announcement,
  state: RunState,
): AnnouncementBody {
  const view = viewOf(state, named);
  // A verdict rests on all stages; nothing is told of some alone once the run has ended.
  const run = announcedRun(view, named === undefined ? judge(view) : null);
  const stages: AnnouncedStage[] = [];
  let room = BODY_CHARACTERS_MAX - JSON.stringify(run).length;
  for (const stage of view.stages) {
    const announced = announcedStage(stage);
    room -= JSON.stringify(announced).length + 1;
    if (room < 0) break;
    stages.push(announced);
  }
  const leftOut = view.stages.length - stages.length;
  return {
    type,
    timestamp: isoTime(at),
    data: { version, run, stages, ...(leftOut === 0 ? {} : { stagesLeftOut: leftOut }) },
  };
}

function announcedRun(view: RunView, judgement: Judgement | null): AnnouncedRun {
  const run = {
    id: view.id,
    pipelineName: view.pipelineName,
    status: view.status,
    startedAt: view.startedAt,
    finishedAt: view.finishedAt,
    outcome: view.outcome,
    reason: view.reason,
    verdict: judgement?.verdict ?? null,
    verdictEvidence: judgement?.evidence ?? [],
    trigger: view.trigger ?? null,
    trusted: view.trusted === true,
    actor: view.actor ?? null,
    provider: view.provider ?? null,
    repository: view.repository ?? null,
    ref: view.ref ?? null,
    commit: view.commit ?? null,
    source: view.source ?? null,
    parentRunId: view.lineage?.parent ?? null,
    rootRunId: view.lineage?.root ?? null,
  };
  const inputs = view.inputs ?? [];
  return { ...run, inputs: JSON.stringify(inputs).length < BODY_CHARACTERS_MAX / 2 ? inputs : [] };
}

function announcedStage(stage: StageView): AnnouncedStage {
  const { name, status, startedAt, finishedAt, reason, exitCode, attempt, outputs } = stage;
  return { name, status, startedAt, finishedAt, reason, exitCode, attempt, outputs };
}

/**
 * What stays in memory of a run that waits outside of it: its document in the store is all of the run. Only a run of which no
 * stage was ever granted may be parked: nothing is about to happen to it but that it begins, or that its turn comes; none that waits for
 * people. One that
 * supersedes the runs before it stays: who takes it over finds by it which those are.
 */
import {
  isEnded,
  type RunId,
  type RunState,
  type StagePicture,
  type StoredRunState,
  type Version,
} from '@penstock/run';
import type { RunDocument } from '@penstock/store';
import { bytesOfHistory } from './held-bytes.ts';
import type { LiveRun } from './live-run.ts';

/** Some hundred bytes, whatever the run is. */
export interface ParkedRun {
  readonly id: RunId;
  readonly tenant: string;
  readonly key: string;
  readonly createdAt: number;
  readonly pipelineName: string;
  readonly status: RunState['status'];
  readonly repository: string | undefined;
  readonly ref: string | undefined;
  /** About how much memory it takes, without its definition. */
  readonly bytes: number;
  /** Of the document: nothing has happened since. */
  readonly version: Version;
  /** Its concurrency group, if any. */
  readonly group: string | undefined;
  /** It waits for its turn, and none of its stages for a runner yet. */
  readonly held: boolean;
  /** When the first wait of its stages is over, by the boot clock; Infinity: nothing of it is timed. */
  readonly dueAt: number;
}

/** The same as a take-over finds it. */
export interface ParkedDocument extends Omit<ParkedRun, 'dueAt'> {
  /** Since when its stages wait, by the wall clock; undefined where it is held. */
  readonly queuedAt: number | undefined;
  /** How many runs of the key may go on, as it was when this one was created; absent: any number. */
  readonly maxConcurrent: number | undefined;
  /** As its `run_created` says. */
  readonly runOfMonth: number | undefined;
}

export function mayPark(run: LiveRun): boolean {
  return (
    run.restoreError === undefined &&
    run.definition.concurrency?.cancelInProgress !== true &&
    waitsUnstarted(run.state, run.state.stages.touched())
  );
}

export function parkedRunOf(run: LiveRun, more: Pick<ParkedRun, 'dueAt' | 'bytes'>): ParkedRun {
  return { ...pictureOf(run.state), version: run.committedVersion, ...more };
}

/** Undefined: a run that must be in memory. */
export function parkedDocumentOf({ open, state, events }: RunDocument): ParkedDocument | undefined {
  if (!open || !waitsUnstarted(state, state.stages) || maySupersede(state)) return undefined;
  const [created] = events;
  let queuedAt = Number.POSITIVE_INFINITY;
  for (const stage of state.stages)
    if (stage.status === 'QUEUED') queuedAt = Math.min(queuedAt, stage.queuedAt ?? state.createdAt);
  const isTimed = queuedAt !== Number.POSITIVE_INFINITY;
  if (created?.type !== 'run_created' || isTimed === state.held) return undefined;
  const { maxConcurrent, runOfMonth } = created;
  const bytes = bytesOfHistory(events, state);
  return {
    ...pictureOf(state),
    bytes,
    version: events.length,
    queuedAt: isTimed ? queuedAt : undefined,
    maxConcurrent,
    runOfMonth,
  };
}

export function parkedRunOfDocument(
  { queuedAt: _queuedAt, maxConcurrent: _maxConcurrent, runOfMonth: _runOfMonth, ...run }: ParkedDocument,
  dueAt: number,
): ParkedRun {
  return { ...run, dueAt };
}

function pictureOf(state: RunState | StoredRunState): Omit<ParkedRun, 'bytes' | 'version' | 'dueAt'> {
  const { id, tenant, key, createdAt, pipelineName, status, origin, group, held } = state;
  const { repository, ref } = origin;
  return { id, tenant, key, createdAt, pipelineName, status, repository, ref, group, held };
}

function waitsUnstarted(state: RunState | StoredRunState, stages: Iterable<StagePicture>): boolean {
  if (isEnded(state.status) || state.liveAttempts > 0 || state.awaitsApproval === true || state.rested === true)
    return false;
  // Who takes it over has to go on with what it takes over itself (P30).
  if (state.adoptionsLeft !== undefined) return false;
  // A newer head cancels it in the commit of its own run.
  if (state.origin.pullRequest !== undefined) return false;
  for (const { attempt, dueAt, gateDueAt } of stages)
    if (attempt > 0 || dueAt !== undefined || gateDueAt !== undefined) return false;
  return true;
}

/** Its text is not read here: it may say so in letters, or in escapes. */
function maySupersede({ group, yaml }: Pick<RunState | StoredRunState, 'group' | 'yaml'>): boolean {
  return group !== undefined && /cancel_in_progress|\\[xuU]/.test(yaml);
}

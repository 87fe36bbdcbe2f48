/**
 * How a partition comes to know what its earlier owners have left (P6): in slices, for a scheduler that takes over a hundred
 * thousand runs has other partitions, a membership to renew, and runners to answer. Nothing is answered, offered or sent before
 * the last slice (PARTITION-5).
 */
import { spares, type RunId } from '@penstock/run';
import { byTurn, turnOf, type ConcurrencySlots, type FoundRun } from '../admission/concurrency-slots.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { PullRequests } from '../admission/pull-requests.ts';
import type { Deadlines } from '../run/deadlines.ts';
import type { HeldBytes } from '../run/held-bytes.ts';
import type { RunLengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { NewestRuns } from '../run/newest-runs.ts';
import { mayPark, parkedRunOfDocument, type ParkedDocument } from '../run/parked-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { isTight, type SchedulerLoad } from '../run/scheduler-load.ts';
import { inSlices, mappedInSlices, sortedInSlices } from '../run/slices.ts';
import { queueDeadline } from '../run/stage-times.ts';
import type { Adoptions } from './adoptions.ts';
import type { Deletions } from './deletions.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parking } from './parking.ts';
import type { PartitionSettings } from './partition-settings.ts';
import type { ProjectionBacklog } from './projection-backlog.ts';
import type { RememberedIds } from './remembered-ids.ts';
import type { RestoredPartition } from './restored-partition.ts';
import type { Resumption } from './resumption.ts';
import type { RunBorder } from './run-border.ts';
import type { Schedules } from './schedules.ts';
import type { RunnerRuns } from './runner-runs.ts';
import type { SlotsInUse } from './slots-in-use.ts';

export interface PartitionOpeningHost {
  readonly settings: PartitionSettings;
  readonly ports: Pick<PartitionPorts, 'now' | 'bootNow'>;
  readonly load: SchedulerLoad;
  readonly cycle: Pick<CommitCycle, 'start'>;
  readonly ids: Pick<RememberedIds, 'opened'>;
  readonly held: Pick<HeldBytes, 'ofKey'>;
  readonly backlog: Pick<ProjectionBacklog, 'add'>;
  readonly runnerRuns: RunnerRuns;
  readonly lengths: Pick<RunLengths, 'restore'>;
  readonly slotsInUse: Pick<SlotsInUse, 'restore'>;
  readonly counts: KeyCounts;
  readonly pulls: Pick<PullRequests, 'enter'>;
  readonly slots: ConcurrencySlots;
  readonly parking: Pick<Parking, 'park' | 'left'>;
  readonly newest: Pick<NewestRuns, 'set'>;
  readonly deadlines: Pick<Deadlines, 'arm'>;
  readonly resumption: Pick<Resumption, 'add'>;
  readonly schedules: Pick<Schedules, 'restore'>;
  readonly adoptions: Pick<Adoptions, 'found'>;
  readonly deletions: Pick<Deletions, 'restore'>;
  readonly border: RunBorder;
  /** Takes a run into memory. */
  remember(run: LiveRun): void;
  offerWaiting(run: LiveRun): void;
  /** A newer run of its group takes its place. */
  supersede(runIds: readonly RunId[]): void;
  /** It could not be restored. */
  quarantine(run: LiveRun, cause: string): void;
}

interface Now {
  readonly wall: number;
  readonly boot: number;
}

export function* openPartition(
  host: PartitionOpeningHost,
  {
    sequence,
    commitNumber,
    idsTo = 0,
    runs,
    parked = [],
    usages = [],
    schedules = [],
    deleted = [],
    leftOut = [],
    neverOwned = false,
    room,
  }: RestoredPartition,
): Generator<void, void> {
  const { settings, ports, cycle, ids, counts, slots, runnerRuns } = host;
  const now: Now = { wall: ports.now(), boot: ports.bootNow() };
  cycle.start(sequence, commitNumber, idsTo);
  ids.opened(now.wall, { neverOwned, idsTo });
  const inOrder = yield* sortedInSlices(runs, (a, b) => turnOf(a.state) - turnOf(b.state) || (a.id < b.id ? -1 : 1));
  // What stood in the log alone was read whatever room there was.
  const tooMany: LiveRun[] = [];
  const take = (run: LiveRun): void => {
    const { load, held, remember, backlog, slotsInUse, lengths, pulls } = host;
    room?.free(run.id);
    // What is read and not counted yet is younger.
    const before = { ...load, liveBytes: load.liveBytes - (room?.bytes ?? 0) };
    if (isTight(before, held.ofKey(run.state.key)) && mayPark(run)) tooMany.push(run);
    remember(run);
    backlog.add(run);
    run.times.restore(run.state, now);
    runnerRuns.happened(run, run.events);
    slotsInUse.restore(run);
    lengths.restore(run, now);
    pulls.enter(run, now.boot, now.wall - run.state.createdAt);
  };
  yield* inSlices(inOrder, take, weightOf);
  yield* counts.restore(usages, inOrder, now.wall, parked);
  const inMemory = yield* mappedInSlices(inOrder, foundRun);
  const outside = yield* mappedInSlices(parked, foundOutside);
  const found = yield* sortedInSlices(inMemory.concat(outside), byTurn);
  yield* slots.restore(found, (key) => counts.limitOf(key));
  yield* restoreParked(host, parked, tooMany, (queuedAt) => queueDeadline(queuedAt, settings, now));
  yield* supersedeAgain(host, inOrder);
  yield* inSlices(inOrder, (run) => host.border.run(run, () => goOnWith(host, run)), weightOf);
  yield* inSlices(runnerRuns.names, (runner) => runnerRuns.lookAtLabels(runner));
  yield* slots.open();
  yield* host.schedules.restore(schedules);
  host.deletions.restore(deleted, leftOut);
}

/** What waits in it, and what has to be done about it by a time. */
function goOnWith(host: PartitionOpeningHost, run: LiveRun): void {
  if (!run.ended) host.offerWaiting(run);
  host.deadlines.arm(run, host.ports.bootNow());
  host.resumption.add(run);
  host.adoptions.found(run);
  if (run.restoreError !== undefined && !run.ended) host.quarantine(run, run.restoreError);
}

/** Those outside, and those that are to go there, in the order of their creation. */
function* restoreParked(
  { load, parking, newest }: PartitionOpeningHost,
  parked: readonly ParkedDocument[],
  tooMany: readonly LiveRun[],
  dueAtOf: (queuedAt: number) => number,
): Generator<void, void> {
  const lines = yield* sortedInSlices(
    [
      ...parked.map((outside) => ({ outside, run: undefined, at: outside.createdAt, id: outside.id })),
      ...tooMany.map((run) => ({ outside: undefined, run, at: run.state.createdAt, id: run.id })),
    ],
    (a, b) => a.at - b.at || (a.id < b.id ? -1 : 1),
  );
  yield* inSlices(lines, ({ outside, run }) => {
    if (outside === undefined) {
      parking.park(run, run.state.held);
      return;
    }
    const { queuedAt } = outside;
    const left = parkedRunOfDocument(outside, queuedAt === undefined ? Number.POSITIVE_INFINITY : dueAtOf(queuedAt));
    load.liveRuns += 1;
    parking.left(left);
    newest.set(left.tenant, left);
  });
}

/** What a run has superseded may have been outside, and its owner gone before it was read and cancelled. */
function* supersedeAgain(
  { slots, supersede }: PartitionOpeningHost,
  inOrder: readonly LiveRun[],
): Generator<void, void> {
  const groups = new Set<string>();
  yield* inSlices(inOrder.toReversed(), (run) => {
    const { id, definition, state } = run;
    const { key, group } = state;
    if (definition.concurrency?.cancelInProgress !== true || group === undefined || run.ended) return;
    const name = `${key}\n${group}`;
    if (groups.has(name)) return;
    groups.add(name);
    const members = slots.members(key, group);
    // A rerun waits for the runs that it was made from as for any other, and does not take their place.
    supersede(members.slice(0, Math.max(0, members.indexOf(id))).filter((before) => !spares(state.lineage, before)));
  });
}

function foundRun(run: LiveRun): FoundRun {
  const { key, group, held, awaitsApproval, rested } = run.state;
  const isApart = run.settled || awaitsApproval === true;
  return { id: run.id, key, turn: turnOf(run.state), group, held, rests: rested === true, isApart, isOutside: false };
}

function foundOutside({ id, key, createdAt, group, held }: ParkedDocument): FoundRun {
  return { id, key, turn: createdAt, group, held, rests: false, isApart: false, isOutside: true };
}

/** A run of a thousand stages is as much as many small ones. */
function weightOf({ plan, events }: LiveRun): number {
  return 1 + (plan.stages.length + events.length) / 50;
}

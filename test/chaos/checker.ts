/**
 * The account of a chaos run: every run that a client was promised, against the journal, the documents, the files that the
 * stages left, the log streams and the processes of the machine. A pure function of that evidence.
 */
import { parsePipeline } from '@penstock/pipeline';
import { planOf, type RunEvent } from '@penstock/run';
import { foldRun, type Commit } from '@penstock/scheduler/testing';
import type { StreamEvent } from '../support/sse.ts';
import type { ChaosStage } from './pipelines.ts';
import { endOf, isOver, type JournaledRun } from './journal.ts';
import type { AcceptedRun, LoadAccount } from './load-account.ts';
import { rightTime } from './clock.ts';
import { checkDoors } from './doors/door-checks.ts';
import type { DoorAccount } from './doors/door-load.ts';
import { executions } from './executions.ts';
import { checkNumbers } from './line-checks.ts';
import type { Mark, Marks } from './marks.ts';
import { checkStream } from './stream-checks.ts';
import { checkAdded, stagesOf } from './steer/added-stages.ts';
import { beganBefore, checkGate, type GateEvidence } from './steer/gate-checks.ts';
import { adoptedIn, checkRerun } from './steer/lineage-checks.ts';
import { checkPictures, checkRefused, type Looks } from './steer/looks.ts';
import { steeredTotals, type SteeredTotals } from './steer/totals.ts';
import { checkTicks } from './steer/tick-checks.ts';
import type { TickAccount } from './steer/tick-load.ts';
import type { Report, Violation, ViolationKind } from './violations.ts';

export interface Evidence {
  readonly account: LoadAccount;
  readonly journal: {
    readonly runs: ReadonlyMap<string, JournaledRun>;
    readonly faults: readonly string[];
    readonly commits?: readonly Commit[];
  };
  readonly marks: Marks;
  /** Of the accepted runs: the version and status of their documents. */
  readonly documents: ReadonlyMap<
    string,
    { readonly version: number; readonly status: string; readonly open: boolean } | null
  >;
  /** Whole event streams, of the runs that were watched and of some others; null: could not be had. */
  readonly replays: ReadonlyMap<string, readonly StreamEvent[] | null>;
  /** Command lines of processes that carry the token of this load. */
  readonly orphans: readonly string[];
  /** Whether anything happened that may cost a runner its lease. */
  readonly mayLoseAttempts: boolean;
  /** Clocks were set an hour forward or back, so the moments in events may be as far off. */
  readonly clocksStepped?: boolean;
  /** Where the disk of a runner was full, a stage may not have been prepared. */
  readonly disksFilled?: boolean;
  /** Chunks of logs went before their time: what is missing is to be told as missing. */
  readonly logsLimited?: boolean;
  /** Where the load came in by the other doors too. */
  readonly doors?: DoorAccount | undefined;
  /** Of runs that were repeated, and those that repeat them: what clients are shown in the end. */
  readonly looks?: Looks | undefined;
  /** Where repositories had schedules. */
  readonly ticks?: TickAccount | undefined;
}

export interface Totals {
  readonly accepted: number;
  readonly unanswered: number;
  readonly ended: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly attemptsLost: number;
  readonly attemptsReturned: number;
  readonly watched: number;
  readonly reconnects: number;
  readonly lines: number;
  readonly steered: SteeredTotals;
}

/** The moments of events are whole milliseconds. */
const CLOCK_SLACK_MS = 2;

/** Why attempts of this load may end; whether they may be lost is looked at by itself. */
const KNOWN_REASONS: ReadonlySet<string> = new Set(['exit', 'runner_lost', 'cancelled']);

export function check(evidence: Evidence): { readonly violations: readonly Violation[]; readonly totals: Totals } {
  const violations: Violation[] = [];
  const report = (kind: ViolationKind, runId: string, detail: string): void =>
    void violations.push({ kind, runId, detail });
  const { account, journal, replays } = evidence;
  for (const fault of journal.faults) report('journal', '', fault);
  for (const orphan of evidence.orphans) report('orphan', '', orphan);
  for (const { kind, runId, detail } of account.broken) report('answer', runId, `${kind}: ${detail}`);
  for (const run of account.accepted) checkAccepted(run, evidence, (kind, detail) => report(kind, run.id, detail));
  for (const run of account.unanswered) {
    const { id } = run;
    const journaled = journal.runs.get(id);
    if (journaled !== undefined) checkRun(journaled, run, evidence, (kind, detail) => report(kind, id, detail));
  }
  checkGroups(account, evidence.marks, report);
  for (const watched of account.watched) {
    const journaled = journal.runs.get(watched.runId);
    if (journaled === undefined || endOf(journaled) === undefined) continue;
    const replay = replays.get(watched.runId);
    for (const detail of checkStream(watched, replay ?? null, evidence.logsLimited === true))
      report('stream', watched.runId, detail);
  }
  checkPictures(account, evidence.looks, report);
  checkRefused(account, journal.runs, report);
  if (evidence.ticks !== undefined)
    checkTicks(
      {
        account: evidence.ticks,
        runs: journal.runs,
        commits: journal.commits ?? [],
        clocksStepped: evidence.clocksStepped === true,
      },
      report,
    );
  if (evidence.doors !== undefined) violations.push(...checkDoors(evidence.doors, journal.runs));
  return { violations, totals: totalsOf(evidence) };
}

function checkAccepted(run: AcceptedRun, evidence: Evidence, report: Report): void {
  const journaled = evidence.journal.runs.get(run.id);
  if (journaled === undefined)
    return report('lost', `accepted at ${new Date(run.acceptedAt).toISOString()}, and in no journal`);
  const ended = endOf(journaled);
  if (run.cancel === 'cancelled' && ended !== 'CANCELLED')
    report('answer', `its cancel was answered, and it ended ${ended ?? 'not at all'}`);
  if (run.cancel === 'had ended' && run.cancelRepeated !== true && ended === 'CANCELLED')
    report('answer', 'its only cancel was refused, and it ended CANCELLED');
  const shown = ended === 'QUARANTINED' ? 'FAILED' : ended;
  if (run.shownEnd !== undefined && run.shownEnd !== shown)
    report('answer', `a client was shown ${run.shownEnd}, and it ended ${shown ?? 'not at all'}`);
  const document = evidence.documents.get(run.id);
  if (document === null || document === undefined) report('document', 'there is none');
  else if (document.version !== journaled.events.length)
    report('document', `it stands for version ${document.version} of ${journaled.events.length}`);
  else if (document.open && isOver(journaled)) report('document', 'it is still marked as open');
  checkRun(journaled, run, evidence, report);
}

function checkRun(
  run: JournaledRun,
  { pipeline, rerun }: Pick<AcceptedRun, 'pipeline' | 'rerun'>,
  evidence: Evidence,
  report: Report,
): void {
  if (endOf(run) === undefined) report('unfinished', `after ${JSON.stringify(run.events.at(-1))}`);
  else if (!isOver(run)) report('unfinished', 'it has ended, but an attempt of it was never confirmed gone');
  if (endOf(run) === 'QUARANTINED')
    report('untrue', `quarantined: ${JSON.stringify(run.events.find(({ type }) => type === 'run_quarantined'))}`);
  const parsed = parsePipeline(pipeline.yaml);
  try {
    if (parsed.ok) foldRun(run.id, planOf(parsed.definition), run.events, run.events.length);
  } catch (error) {
    report('journal', `its events do not make a run: ${String(error)}`);
  }
  checkAfterEnd(run.events, report);
  const marks = evidence.marks.get(run.id) ?? new Map<string, readonly Mark[]>();
  const executed = executions(
    evidence.clocksStepped === true
      ? run.events.map((event, index) => ({ ...event, at: run.committedAt?.[index] ?? event.at }))
      : run.events,
  );
  const { runs } = evidence.journal;
  const stages = stagesOf(run, pipeline, runs);
  checkAdded(executed, stages, new Set(marks.keys()), report);
  const gates: GateEvidence = {
    events: executed,
    marks,
    answers: (evidence.account.gates ?? []).filter(({ runId }) => runId === run.id),
    clocksStepped: evidence.clocksStepped === true,
  };
  const adopted = new Set(adoptedIn(run.events).map(({ stage }) => stage));
  for (const stage of stages) {
    const own = marks.get(stage.name) ?? [];
    if (stage.gate !== undefined) {
      checkGate(stage, gates, report);
      continue;
    }
    checkAttempts(stage.name, own, executed, evidence, report);
    const started = own.find(({ kind }) => kind === 'start');
    if (started === undefined) continue;
    for (const before of stage.after) {
      if (adopted.has(before)) continue;
      const last = (marks.get(before) ?? []).at(-1);
      const earlier = stages.find(({ name }) => name === before);
      // Gates leave none, nor does what was lost before it began.
      const isEarly =
        last === undefined ? earlier === undefined || beganBefore(earlier, started.at, gates) : last.at > started.at;
      if (isEarly) report('order', `${stage.name} started before ${before} had ended`);
    }
  }
  if (rerun !== undefined)
    checkRerun(run, rerun, pipeline, { runs, marks, shown: evidence.looks?.lineages ?? new Map() }, report);
  const replay = evidence.replays.get(run.id);
  if (replay !== undefined && replay !== null)
    checkLines(replay, executed, stages, evidence.logsLimited === true, report);
}

function checkAfterEnd(events: readonly RunEvent[], report: Report): void {
  const end = events.findIndex(
    ({ type }) => type === 'run_completed' || type === 'run_cancelled' || type === 'run_quarantined',
  );
  for (const event of end < 0 ? [] : events.slice(end + 1)) {
    if (event.type !== 'attempt_gone' && event.type !== 'run_stopped' && event.type !== 'workspace_lost')
      report('late', `${event.type} after the end of the run`);
  }
}

function checkAttempts(
  stage: string,
  marks: readonly Mark[],
  events: readonly RunEvent[],
  { mayLoseAttempts: mayLose, clocksStepped, disksFilled }: Evidence,
  report: Report,
): void {
  const own = events.filter((event) => 'stage' in event && event.stage === stage);
  const granted = new Set(own.flatMap((event) => (event.type === 'stage_started' ? [event.attempt] : [])));
  const byAttempt = Map.groupBy(marks, ({ attempt }) => attempt);
  for (const [attempt, lived] of byAttempt) {
    const name = `attempt ${attempt} of ${stage}`;
    const starts = lived.filter(({ kind }) => kind === 'start').length;
    if (starts > 1) report('doubled', `${name} was started ${starts} times`);
    if (!granted.has(attempt)) report('doubled', `${name} ran and was never granted`);
    const last = lived.at(-1)?.at ?? 0;
    for (const [later, others] of byAttempt) {
      const first = others[0]?.at ?? 0;
      if (later > attempt && first < last)
        report('overlapping', `${name} lived until ${last}, and attempt ${later} started at ${first}`);
    }
    const over = own.find(
      (event) =>
        event.type !== 'stage_started' &&
        event.type !== 'stage_stopping' &&
        'attempt' in event &&
        event.attempt === attempt,
    );
    if (over === undefined) continue;
    const overAt = clocksStepped === true ? rightTime(over.at, last) : over.at;
    if (Math.floor(last) > overAt + CLOCK_SLACK_MS)
      report('late', `${name} lived at ${last}, after ${over.type} at ${overAt}`);
  }
  for (const event of own) {
    if (
      (event.type === 'stage_completed' || event.type === 'stage_retrying') &&
      event.reason === 'runner_lost' &&
      !mayLose
    ) {
      report(
        'untrue',
        `attempt ${event.attempt} of ${stage} was declared lost, and nothing had happened to its runner`,
      );
    }
    if (
      (event.type === 'stage_completed' || event.type === 'stage_retrying') &&
      event.reason !== undefined &&
      !KNOWN_REASONS.has(event.reason) &&
      !(disksFilled === true && event.reason === 'checkout')
    )
      report('untrue', `attempt ${event.attempt} of ${stage} ended with ${event.reason}, and nothing had led to that`);
    if (event.type !== 'stage_completed') continue;
    const kinds = new Set((byAttempt.get(event.attempt) ?? []).map(({ kind }) => kind));
    if (event.status === 'SUCCESS' && !kinds.has('end'))
      report('untrue', `attempt ${event.attempt} of ${stage} succeeded without coming to its end`);
    if (event.reason === 'exit' && !kinds.has('fail') && !(disksFilled === true && kinds.has('full')))
      report(
        'untrue',
        `attempt ${event.attempt} of ${stage} failed with ${event.exitCode ?? 'no code'}, and did not exit itself`,
      );
    if ([...byAttempt.keys()].some((attempt) => attempt > event.attempt))
      report('doubled', `${stage} ran again after it had ended with attempt ${event.attempt}`);
  }
}

/** What is emitted is a beginning of an attempt's lines, and all of them where it succeeded. */
function checkLines(
  replay: readonly StreamEvent[],
  events: readonly RunEvent[],
  stages: readonly ChaosStage[],
  mayMiss: boolean,
  report: Report,
): void {
  const { emitted, missing, problem } = checkNumbers(replay, mayMiss);
  if (problem !== undefined) return report('stream', problem);
  for (const event of events) {
    if (event.type !== 'stage_completed' || event.status !== 'SUCCESS' || missing.has(event.stage)) continue;
    const lines = stages.find(({ name }) => name === event.stage)?.lines ?? 0;
    const seen = emitted.get(`${event.attempt} ${event.stage}`) ?? 0;
    if (seen !== lines)
      report(
        'stream',
        `attempt ${event.attempt} of ${event.stage} succeeded with ${lines} lines, and its event stream has ${seen}`,
      );
  }
}

/** Runs of one group: the files of one end before those of the next begin. */
function checkGroups(
  account: LoadAccount,
  marks: Marks,
  report: (kind: ViolationKind, runId: string, detail: string) => void,
): void {
  const grouped = [...account.accepted, ...account.unanswered].filter(({ pipeline }) => pipeline.grouped);
  for (const runs of Map.groupBy(grouped, ({ pipeline }) => pipeline.name).values()) {
    const spans = runs
      .flatMap(({ id }) => {
        const moments = [...(marks.get(id)?.values() ?? [])].flat().map(({ at }) => at);
        return moments.length === 0 ? [] : [{ id, first: Math.min(...moments), last: Math.max(...moments) }];
      })
      .sort((one, other) => one.first - other.first);
    spans.forEach((span, index) => {
      const next = spans[index + 1];
      if (next !== undefined && next.first < span.last)
        report(
          'overlapping',
          next.id,
          `began at ${next.first}, while ${span.id} of its group lived until ${span.last}`,
        );
    });
  }
}

function totalsOf({ account, journal, replays, ticks }: Evidence): Totals {
  const ended: Record<string, number> = {};
  let attempts = 0;
  let attemptsLost = 0;
  let attemptsReturned = 0;
  for (const { id } of account.accepted) {
    const run = journal.runs.get(id);
    const status = run === undefined ? 'lost' : (endOf(run) ?? 'unfinished');
    ended[status] = (ended[status] ?? 0) + 1;
    for (const event of run?.events ?? []) {
      if (event.type === 'stage_started') attempts += 1;
      if (event.type === 'stage_returned') attemptsReturned += 1;
      if ((event.type === 'stage_retrying' || event.type === 'stage_completed') && event.reason === 'runner_lost')
        attemptsLost += 1;
    }
  }
  const lines = [...replays.values()].reduce(
    (sum, replay) => sum + (replay?.filter(({ event }) => event === 'stage_log').length ?? 0),
    0,
  );
  return {
    accepted: account.accepted.length,
    unanswered: account.unanswered.length,
    ended,
    attempts,
    attemptsLost,
    attemptsReturned,
    lines,
    steered: steeredTotals(account, journal.runs, ticks),
    watched: account.watched.length,
    reconnects: account.watched.reduce((sum, { reconnects }) => sum + reconnects, 0),
  };
}

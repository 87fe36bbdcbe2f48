/**
 * Schedules (P28): a time makes one run at most, of a commit that was pushed; none is passed over in silence. A time that nobody
 * fired is told as missed by the next that was, and what was due when all was healed has been fired.
 */
import type { Commit } from '@penstock/scheduler/testing';
import { isOver, type JournaledRun } from '../journal.ts';
import type { ReportRun } from '../violations.ts';
import { MINUTE_MS, ticksIn, type FoundTick, type TickAccount, type TickLine } from './tick-load.ts';

export interface TickEvidence {
  readonly account: TickAccount;
  readonly runs: ReadonlyMap<string, JournaledRun>;
  readonly commits: readonly Commit[];
  /** A clock that is an hour ahead fires what has not come, and one that is behind fires late. */
  readonly clocksStepped: boolean;
}

export function checkTicks({ account, runs, commits, clocksStepped }: TickEvidence, report: ReportRun): void {
  const found = ticksIn(runs).filter(({ repository }) => account.lines.has(repository));
  for (const [repository, line] of account.lines) {
    const ticks = found.filter((each) => each.repository === repository).toSorted((a, b) => a.tick - b.tick);
    for (const tick of ticks) checkRun(tick, line, report);
    ticks.forEach((tick, index) => {
      const next = ticks[index + 1];
      if (next?.tick === tick.tick)
        report('doubled', next.run.id, `${timeOf(tick)} of ${repository} is that of ${tick.run.id} too`);
    });
    if (!clocksStepped) checkNoneLost(repository, line, ticks, report);
  }
  checkFired(found, commits, report);
}

function checkRun(tick: FoundTick, { commits }: TickLine, report: ReportRun): void {
  const { run, commit, repository } = tick;
  if (!commits.includes(commit)) report('untrue', run.id, `${commit} was never pushed to ${repository}`);
  if (tick.tick % MINUTE_MS !== 0) report('untrue', run.id, `${timeOf(tick)} is no time of '* * * * *'`);
  if (!isOver(run)) report('unfinished', run.id, `the run of ${timeOf(tick)} of ${repository}`);
}

/** Each time from the first push on is fired, or missed by what is fired next. */
function checkNoneLost(
  repository: string,
  { from, until }: TickLine,
  ticks: readonly FoundTick[],
  report: ReportRun,
): void {
  if (from === undefined) return;
  const told = new Set(
    ticks.flatMap(({ tick, missed }) => Array.from({ length: missed + 1 }, (_, index) => tick - index * MINUTE_MS)),
  );
  for (let tick = Math.ceil(from / MINUTE_MS) * MINUTE_MS; tick <= until; tick += MINUTE_MS)
    if (!told.has(tick)) report('lost', '', `${new Date(tick).toISOString()} of ${repository} made no run`);
  ticks.forEach(({ tick, missed, run }, index) => {
    const before = ticks[index - 1];
    if (before !== undefined && tick - (missed + 1) * MINUTE_MS < before.tick)
      report('untrue', run.id, `it says that ${missed} times were missed, and ${timeOf(before)} was not`);
  });
}

/** The run and the time that it was fired for stand in one commit; a time that was fired before is only recorded again. */
function checkFired(found: readonly FoundTick[], commits: readonly Commit[], report: ReportRun): void {
  const byRun = new Map(found.map((tick) => [tick.run.id, tick]));
  const firedWith = new Set<string>();
  for (const { runs, schedules = [] } of commits)
    for (const event of schedules.flatMap(({ events }) => events)) {
      if (event.type !== 'tick_fired') continue;
      const tick = byRun.get(event.runId);
      if (tick === undefined) continue;
      if (tick.tick !== event.tick)
        report('untrue', event.runId, `fired for ${new Date(event.tick).toISOString()}, it is of ${timeOf(tick)}`);
      if (runs.some(({ id, from }) => id === event.runId && from === 1)) firedWith.add(event.runId);
    }
  for (const { run } of found)
    if (!firedWith.has(run.id)) report('journal', run.id, 'its time was not fired in the commit that made it');
}

function timeOf({ tick }: FoundTick): string {
  return new Date(tick).toISOString();
}

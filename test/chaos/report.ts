/** A chaos report as lines for a person. */
import type { ChaosReport } from './run-chaos.ts';
import { spread } from './recovery.ts';

const VIOLATIONS_SHOWN = 30;

export function reportLines({
  totals,
  violations,
  recovery,
  faults,
  triggerMs,
  failures,
  examples,
  settledMs,
  doors,
}: ChaosReport): string[] {
  const counts = (kinds: readonly string[]): string =>
    kinds.map((kind) => `${violations.filter((one) => one.kind === kind).length} ${kind}`).join(', ');
  const list = (entries: Iterable<readonly [string, number]>): string =>
    [...entries].map(([name, count]) => `${count} ${name}`).join(', ') || 'none';
  return [
    `accepted      ${totals.accepted} runs (${totals.unanswered} triggers never answered): ${list(Object.entries(totals.ended))}`,
    `attempts      ${totals.attempts}; ${totals.attemptsLost} declared lost, ${totals.attemptsReturned} returned unstarted`,
    `watchers      ${totals.watched}, ${totals.reconnects} reconnects; ${totals.lines} lines compared`,
    `gates         ${list(Object.entries(totals.steered.gatesEnded))}; decisions ${list(Object.entries(totals.steered.decisions))}`,
    `steered       ${totals.steered.reruns} runs of runs (${totals.steered.rerunsRefused} refused), ${totals.steered.adopted} stages taken over; ${totals.steered.added} times stages added; ${totals.steered.ticks} times of schedules (${totals.steered.ticksMissed} missed)`,
    `faults        ${list(
      Map.groupBy(faults, ({ kind }) => kind)
        .entries()
        .map(([kind, all]) => [kind, all.length] as const),
    )}`,
    ...(doors === undefined
      ? []
      : [
          `doors         ${doors.deliveries.answered.size} deliveries accepted (${doors.deliveries.unanswered.size} not), ${doors.publishes.accepted.size} versions published, ${doors.logins.sessions.length} sessions (${doors.logins.sessions.reduce((sum, { refreshes }) => sum + refreshes, 0)} refreshes, ${doors.logins.sessions.filter(({ state }) => state === 'out').length} logouts, ${doors.logins.sessions.filter(({ state }) => state === 'unsure').length} unsure), ${doors.logins.interrupted} logins came to nothing`,
        ]),
    `calls failed  ${list(failures)}`,
    ...examples.map((example) => `              ${example}`),
    `triggers      ${spread(triggerMs)}`,
    `recovery      scheduler killed: ${spread(recovery.schedulerKilled)}`,
    `              scheduler stopped: ${spread(recovery.schedulerStopped)}`,
    `              runner gone, its attempts lost after: ${spread(recovery.runnerLost)}`,
    `              runner restarted, its attempts lost after: ${spread(recovery.runnerRestarted)}`,
    `              everything over ${Math.round(settledMs)} ms after the last fault`,
    `violations    ${counts(['lost', 'unfinished', 'doubled', 'overlapping', 'late', 'order', 'untrue', 'journal', 'document', 'stream', 'answer', 'orphan'])}`,
    ...violations.slice(0, VIOLATIONS_SHOWN).map(({ kind, runId, detail }) => `  ${kind} ${runId}: ${detail}`),
    ...(violations.length > VIOLATIONS_SHOWN ? [`  and ${violations.length - VIOLATIONS_SHOWN} more`] : []),
  ];
}

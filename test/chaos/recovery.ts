/** How long it took until work went on, read from the journal beside the log of faults. Milliseconds. */
import type { Commit } from '@penstock/scheduler/testing';
import type { DoneFault } from './faults.ts';

export interface RecoveryTimes {
  /** From the kill of a scheduler, for each of its partitions, until the next owner has opened it. */
  readonly schedulerKilled: readonly number[];
  /** The same from the moment that a stopping scheduler released the partition. */
  readonly schedulerStopped: readonly number[];
  /** From the kill or freeze of a runner, for each of its attempts that was declared lost. */
  readonly runnerLost: readonly number[];
  /** The same where the runner was back at once, and its new start has confirmed that nothing of the old one lives. */
  readonly runnerRestarted: readonly number[];
}

/** A runner that was back so soon counts as restarted. */
const RESTARTED_WITHIN_MS = 5_000;

/** `commits` are in order within each partition. What met another fault that it depends on is left out. */
export function recoveryTimes(commits: readonly Commit[], faults: readonly DoneFault[]): RecoveryTimes {
  const times = {
    schedulerKilled: [] as number[],
    schedulerStopped: [] as number[],
    runnerLost: [] as number[],
    runnerRestarted: [] as number[],
  };
  for (const log of Map.groupBy(commits, ({ partition }) => partition).values()) takeOvers(log, faults, times);
  for (const fault of faults)
    if (!meets(faults, fault, OUTAGE, fault.begunAt, fault.begunAt + RECOVERY_MS)) lostAttempts(commits, fault, times);
  return times;
}

const OUTAGE = /^(broker|store)-/;
/** An heir that was killed or frozen itself is waited for as long as anybody else. */
const SCHEDULERS = /^(broker-|store-|schedulers?-(kill|freeze|cut|half-open))/;
/** Which others a recovery can meet. */
const RECOVERY_MS = 7_000;
/** What a fault leaves behind for a while: reconnects, memberships that run out. */
const AFTERMATH_MS = 3_000;
const HEIRS_MS = 8_000;

function meets(
  faults: readonly DoneFault[],
  self: DoneFault | undefined,
  kinds: RegExp,
  from: number,
  to: number,
): boolean {
  return faults.some(
    (other) =>
      other !== self &&
      kinds.test(other.kind) &&
      other.begunAt < to &&
      other.endedAt + (OUTAGE.test(other.kind) ? AFTERMATH_MS : HEIRS_MS) > from,
  );
}

function takeOvers(
  log: readonly Commit[],
  faults: readonly DoneFault[],
  times: { readonly schedulerKilled: number[]; readonly schedulerStopped: number[] },
): void {
  log.forEach((commit, index) => {
    const before = log[index - 1];
    if (commit.kind !== 'opened' || before === undefined || before.owner === commit.owner) return;
    if (before.kind === 'released') {
      if (!meets(faults, undefined, SCHEDULERS, before.at, commit.at))
        times.schedulerStopped.push(commit.at - before.at);
      return;
    }
    const killed = faults.find(
      ({ kind, identities }) =>
        kind.startsWith('scheduler') && kind.includes('kill') && identities.includes(before.owner),
    );
    if (
      killed !== undefined &&
      commit.at >= killed.begunAt &&
      !meets(faults, killed, SCHEDULERS, killed.begunAt, commit.at)
    )
      times.schedulerKilled.push(commit.at - killed.begunAt);
  });
}

function lostAttempts(
  commits: readonly Commit[],
  fault: DoneFault,
  times: { readonly runnerLost: number[]; readonly runnerRestarted: number[] },
): void {
  if (fault.kind !== 'runner-kill' && fault.kind !== 'runner-freeze') return;
  const attempts = new Set<string>();
  for (const { runs } of commits) {
    for (const { id, events } of runs) {
      for (const event of events) {
        if (event.type === 'stage_started' && fault.identities.includes(event.session))
          attempts.add(`${id} ${event.stage} ${event.attempt}`);
        const isLoss =
          (event.type === 'stage_retrying' || event.type === 'stage_completed') && event.reason === 'runner_lost';
        if (!isLoss || !attempts.has(`${id} ${event.stage} ${event.attempt}`) || event.at < fault.begunAt) continue;
        const restarted = fault.kind === 'runner-kill' && fault.lastsMs < RESTARTED_WITHIN_MS;
        (restarted ? times.runnerRestarted : times.runnerLost).push(
          event.at - fault.begunAt - (restarted ? fault.lastsMs : 0),
        );
      }
    }
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** `p50 1,204 ms, p99 6,301 ms, max 6,301 ms (of 48)` */
export function spread(values: readonly number[]): string {
  if (values.length === 0) return 'none';
  const text = (value: number): string => `${Math.round(value).toLocaleString('en')} ms`;
  return `p50 ${text(percentile(values, 0.5))}, p99 ${text(percentile(values, 0.99))}, max ${text(Math.max(...values))} (of ${values.length})`;
}

/** Runs that wait until somebody approves them: from the request to the commit from which they go on (P27). Owns nothing. */
import type { ApproveReply, ApproveRequest } from '@penstock/bus';
import { monthOf, viewOf, type Epoch, type RunCommand, type RunId } from '@penstock/run';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { MonthUsedUp } from './new-run.ts';
import type { Reads } from './reads.ts';
import { refusal } from './refusals.ts';

export interface ApprovalsHost {
  readonly epoch: Epoch;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly slots: Pick<ConcurrencySlots, 'timeOfNext' | 'approved' | 'members'>;
  readonly counts: Pick<KeyCounts, 'used' | 'counts'>;
  readonly cycle: Pick<CommitCycle, 'whenCommitted' | 'whenAllCommitted'>;
  readonly reads: Pick<Reads, 'whenCommitted'>;
  at(run: LiveRun): number;
  /** Whether the partition still decides. */
  accepts(): boolean;
  /** Whether it is sure to be the owner (P4). */
  mayAnswer(): boolean;
  decide(run: LiveRun, command: RunCommand): boolean;
  /** A newer run of its group takes its place. */
  supersede(runIds: readonly RunId[]): void;
  advance(): void;
}

export class Approvals {
  readonly #host: ApprovalsHost;

  constructor(host: ApprovalsHost) {
    this.#host = host;
  }

  approve({ runId, tenants, by }: ApproveRequest, reply: (reply: ApproveReply) => void): void {
    const { epoch, runs, reads, cycle, accepts, mayAnswer, advance } = this.#host;
    if (!accepts()) return;
    const run = runs.get(runId);
    if (run === undefined || !tenants.includes(run.state.tenant)) {
      // What is not here is a read like any other: an owner that was frozen may have missed the run (P4).
      if (mayAnswer()) reply(refusal(epoch, 'NOT_FOUND', 'there is no such run'));
      return;
    }
    const { awaitsApproval, approvedAt } = run.state;
    if (awaitsApproval !== true && (run.ended || approvedAt === undefined)) {
      const why = run.ended ? `the run has ended: ${run.state.status}` : 'the run does not wait for an approval';
      reads.whenCommitted(run, () => reply(refusal(epoch, 'CONFLICT', why)));
      return;
    }
    const refused = awaitsApproval === true ? this.#approveWaiting(run, by) : undefined;
    if (refused === undefined)
      cycle.whenCommitted(run, () => reply({ ok: true, epoch, run: viewOf(run.committedState()) }));
    else
      // What is committed says so, and an owner that is sure to be it: what used the month up may never come to be (P4).
      cycle.whenAllCommitted(() => {
        const { message, retryAfterSecs } = refused;
        if (mayAnswer()) reply({ ...refusal(epoch, 'QUOTA_EXCEEDED', message), retryAfterSecs });
      });
    advance();
  }

  #approveWaiting(run: LiveRun, by: string): MonthUsedUp | undefined {
    const { slots, counts, decide, supersede } = this.#host;
    const { key, group } = run.state;
    const [created] = run.events;
    const at = slots.timeOfNext(key, group, this.#host.at(run));
    const used = counts.used(key, monthOf(at));
    const limit = (created?.type === 'run_created' ? created.pipelineRunLimit : undefined) ?? Number.POSITIVE_INFINITY;
    if (used >= limit) return new MonthUsedUp(limit, at);
    const before = group === undefined ? [] : slots.members(key, group);
    // Its place is decided before it may end in the same decision, which frees it.
    const held = slots.approved(run, at);
    decide(run, { type: 'approve', at, by, runOfMonth: used + 1, held });
    counts.counts(run);
    if (run.definition.concurrency?.cancelInProgress === true) supersede(before);
    return undefined;
  }
}

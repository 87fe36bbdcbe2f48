/**
 * What is decided about the runs of a partition, and what follows from it. Each decision passes the border of its run, joins
 * the next commit, and is told to all that keep something of the run; what it calls for is carried out (`effects.ts`). Owns
 * nothing.
 */
import { awaitsRunner, sharedNames, type RunCommand, type RunEvent, type RunId, type Version } from '@penstock/run';
import type { Decided } from '@penstock/run/machine';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { PullRequests } from '../admission/pull-requests.ts';
import type { JobDeliveries } from '../dispatch/job-deliveries.ts';
import type { Offers } from '../dispatch/offers.ts';
import { readyStagesOf, type ReadyStageHost } from '../dispatch/ready-stage.ts';
import type { AwakeRuns } from '../run/awake-runs.ts';
import type { Deadlines } from '../run/deadlines.ts';
import type { HeldBytes } from '../run/held-bytes.ts';
import type { RunLengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { RunPhases } from '../run/run-phases.ts';
import type { PartitionPorts } from '../run/ports.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { carryOut } from './effects.ts';
import type { LoseAttempt } from './held-attempts.ts';
import type { Parking } from './parking.ts';
import type { Resumption } from './resumption.ts';
import type { RunBorder } from './run-border.ts';
import type { RunnerRuns } from './runner-runs.ts';
import type { SlotsInUse } from './slots-in-use.ts';

export interface DecisionsHost {
  readonly ports: Pick<PartitionPorts, 'bootNow' | 'now' | 'closeLog'>;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly cycle: Pick<CommitCycle, 'add' | 'whenCommitted'>;
  readonly border: RunBorder;
  readonly parking: Pick<Parking, 'has'>;
  readonly held: Pick<HeldBytes, 'changed'>;
  readonly phases: Pick<RunPhases, 'changed'>;
  readonly awake: Pick<AwakeRuns, 'happened'>;
  readonly deadlines: Pick<Deadlines, 'wakeAt'>;
  readonly slots: Pick<ConcurrencySlots, 'rested' | 'wants' | 'settled'>;
  readonly slotsInUse: Pick<SlotsInUse, 'happened'>;
  readonly lengths: Pick<RunLengths, 'happened'>;
  readonly pulls: Pick<PullRequests, 'happened'>;
  readonly runnerRuns: Pick<RunnerRuns, 'happened'>;
  /** Made of what is made of this, and so asked for when it is used. */
  parts(): { readonly jobs: JobDeliveries; readonly offers: Pick<Offers, 'add'>; readonly resumption: Resumption };
  isOpen(): boolean;
  /** Grants nothing any more, since the partition goes to another owner. */
  isReleasing(): boolean;
  advance(): void;
  /** Sends the next commit, unless that follows by itself. */
  sendUnlessAdvancing(): void;
}

export class Decisions {
  readonly #host: DecisionsHost;

  constructor(host: DecisionsHost) {
    this.#host = host;
  }

  /** What happens to a run now has this time: the wall clock's, which never runs backwards within a run, whatever is done to it. */
  at(run: LiveRun): number {
    return Math.max(run.lastAt, this.#host.ports.now());
  }

  /** Tells the run's machine; what it decides joins the next commit. */
  decide(run: LiveRun, command: RunCommand): boolean {
    return this.#host.border.run(run, () => this.#tell(run, command)) ?? false;
  }

  /** For answers that arrive by themselves: nothing follows them in the same turn. */
  decideLater(run: LiveRun, command: RunCommand): void {
    if (!this.#host.isOpen() || this.#host.runs.get(run.id) !== run) return;
    this.decide(run, command);
    this.#host.advance();
  }

  begin(run: LiveRun, start: RunCommand): void {
    const { border, awake } = this.#host;
    border.run(run, () => {
      const created = run.events.slice(0, 1);
      awake.happened(run);
      const decided = run.tell(start);
      this.#join(run, 1, [...created, ...(decided?.events ?? [])], decided, start);
    });
  }

  /** A run that had ended before stays as it is, and waits for its attempts still. Throws where even that fails. */
  quarantine(run: LiveRun, cause: string): void {
    this.#tell(run, { type: 'quarantine', at: this.at(run), cause });
    this.#host.parts().resumption.addAfterFault(run);
  }

  /**
   * The attempt ends without a result, and what it has written is known first. Its grant is committed before its log is closed:
   * where another owner goes on without this one's last commit, an attempt of the same number is a process of that owner.
   */
  readonly loseAttempt: LoseAttempt = (run, stage, attempt, runner, stands) => {
    const closed = (logSequence: number): void =>
      this.decideLater(run, { type: 'lose', at: this.at(run), stage, attempt, logSequence });
    const { cycle, ports } = this.#host;
    const log = { runId: run.id, key: run.state.key, runner, stage, attempt };
    cycle.whenCommitted(run, () => ports.closeLog(log, stands, closed));
  };

  offerWaiting(run: LiveRun): void {
    const waiting = run.state.stages.filter(awaitsRunner).map((stage) => stage.name);
    this.#offer(run, sharedNames(run.plan, waiting));
  }

  #offer(run: LiveRun, stages: readonly string[]): void {
    const { parking, parts } = this.#host;
    if (parking.has(run.id)) return;
    for (const ready of readyStagesOf(run, stages, this.#granting)) parts().offers.add(ready);
  }

  readonly #granting: ReadyStageHost = {
    has: (run) => !this.#host.isReleasing() && this.#host.runs.get(run.id) === run,
    grant: (run, stage, { runner, session, credit }) => {
      const taken = this.decide(run, { type: 'grant', at: this.at(run), stage, runner, session, credit });
      // Matched on behalf of another partition: nobody else sends this one's commit.
      if (taken) this.#host.sendUnlessAdvancing();
      return taken;
    },
  };

  #tell(run: LiveRun, command: RunCommand): boolean {
    const { isOpen, awake, parts } = this.#host;
    if (isOpen()) parts().resumption.resume(run);
    const from = run.events.length + 1;
    awake.happened(run);
    const decided = run.tell(command);
    if (decided === undefined) return false;
    this.#join(run, from, decided.events, decided, command);
    return true;
  }

  #join(
    run: LiveRun,
    from: Version,
    events: readonly RunEvent[],
    decided: Decided | undefined,
    command: RunCommand,
  ): void {
    const { ports, cycle, border, slots, deadlines } = this.#host;
    const boot = ports.bootNow();
    run.times.happened(run.state, events, boot);
    this.#host.runnerRuns.happened(run, events);
    this.#host.slotsInUse.happened(run, events);
    this.#host.lengths.happened(run, events, boot);
    this.#host.pulls.happened(run);
    const draft = events.length > 0 ? cycle.add(run, from, events) : undefined;
    this.#host.held.changed(run);
    this.#host.phases.changed(run);
    carryOut(run, decided?.effects ?? [], {
      jobs: this.#host.parts().jobs,
      offer: (of, stages) => this.#offer(of, stages),
      // Of one that was woken its deadlines are armed anew; any other wait begins with the command.
      wakeAt: (of, at) => {
        if (command.type !== 'wake') deadlines.wakeAt(of, boot + at - command.at, boot);
      },
      rested: (of) => slots.rested(of),
      wantsPlace: (of) => slots.wants(of),
      settled: (of) => slots.settled(of),
      afterwards: (of, act) => draft?.afterwards.push(() => border.run(of, act)),
    });
  }
}

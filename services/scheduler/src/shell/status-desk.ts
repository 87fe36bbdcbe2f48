/** Answers administrators how this scheduler stands. Owns its subscriptions; changes nothing. */
import {
  type BusSubscription,
  type QueueStatus,
  type RunnerLease,
  type RunnerStatus,
  type SchedulerStatus,
  subjects,
} from '@penstock/bus';
import type { Controls } from '../controls/controls.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import { NOBODY } from '../dispatch/fleet-entries.ts';
import type { PartitionOwner } from './partition-owner.ts';
import type { SchedulerPorts } from './scheduler-ports.ts';

/** Members and partitions of one answer: more than any installation has. */
const MEMBERS_MAX = 1_000;
/** Of JSON, so that the answer stays below what a message takes. */
const RUNNERS_LENGTH_MAX = 400_000;
const QUEUES_LENGTH_MAX = 200_000;
/** Of the names in it: a file may ask for hundreds of labels, each as long as a line. */
const LABELS_TOLD_MAX = 20;
const TEXT_MAX = 100;

export interface StatusHost {
  readonly bus: Pick<SchedulerPorts['bus'], 'respond'>;
  readonly members: Iterable<string>;
  readonly dispatch: Pick<Dispatch, 'waitingLanes'>;
  readonly controls: Pick<Controls, 'areKnown'>;
  owners(): Iterable<PartitionOwner>;
  leases(): Iterable<RunnerLease>;
  /** Whose alone the runner is; undefined: everybody's. */
  tenantOf(runner: string): string | undefined;
  trouble(): string | undefined;
  journalUsed(): number;
}

export class StatusDesk {
  readonly #host: StatusHost;
  #subscriptions: BusSubscription[] = [];

  constructor(host: StatusHost) {
    this.#host = host;
  }

  /** Answers under this id from now on. */
  open(member: string): void {
    this.close();
    const answer = (): SchedulerStatus => this.#status(member);
    this.#subscriptions = [subjects.status(member), subjects.status('any')].map((subject) =>
      this.#host.bus.respond<null, SchedulerStatus>(subject, answer),
    );
  }

  close(): void {
    for (const subscription of this.#subscriptions.splice(0)) subscription.stop();
  }

  #status(scheduler: string): SchedulerStatus {
    const { members, controls } = this.#host;
    const told = (lease: RunnerLease): RunnerStatus => runnerOf(lease, this.#host.tenantOf(lease.runner));
    const allRunners = [...this.#host.leases()].map(told).toSorted((a, b) => (a.runner < b.runner ? -1 : 1));
    const allQueues = this.#queues();
    const runners = fitting(allRunners, RUNNERS_LENGTH_MAX);
    const queues = fitting(allQueues, QUEUES_LENGTH_MAX);
    const trouble = this.#host.trouble();
    return {
      scheduler,
      members: [...new Set([scheduler, ...members])].slice(0, MEMBERS_MAX),
      ...(trouble === undefined ? {} : { trouble }),
      journalUsed: this.#host.journalUsed(),
      knowsControls: controls.areKnown,
      partitions: [...this.#host.owners()].map(({ number, partition, projectionLagMs }) => ({
        partition: number,
        isOpen: partition?.open === true,
        runs: partition?.runsInMemory ?? 0,
        parked: partition?.parkedRuns ?? 0,
        lagMs: projectionLagMs,
      })),
      runners,
      queues,
      isCut: runners.length < allRunners.length || queues.length < allQueues.length,
    };
  }

  #queues(): QueueStatus[] {
    const queues = new Map<string, QueueStatus>();
    for (const { labels, key, count, since, isPaused } of this.#host.dispatch.waitingLanes()) {
      const told = labels.slice(0, LABELS_TOLD_MAX).map(cut);
      const name = JSON.stringify([told, key]);
      const known = queues.get(name);
      const earliest = Math.min(known?.since ?? Infinity, since ?? Infinity);
      queues.set(name, {
        labels: told,
        key: cut(key),
        count: count + (known?.count ?? 0),
        ...(earliest === Infinity ? {} : { since: earliest }),
        isPaused,
      });
    }
    return [...queues.values()].toSorted((a, b) => b.count - a.count);
  }
}

/** As many of the first as fit. */
function fitting<T>(all: readonly T[], lengthMax: number): readonly T[] {
  let length = 0;
  const end = all.findIndex((each) => (length += JSON.stringify(each).length + 1) > lengthMax);
  return end === -1 ? all : all.slice(0, end);
}

function runnerOf({ runner, session, labels, slots, attempts }: RunnerLease, tenant: string | undefined): RunnerStatus {
  const status = { runner, session, labels: labels.slice(0, LABELS_TOLD_MAX).map(cut), slots, busy: attempts.length };
  // One without an entry is nobody's.
  return tenant === undefined || tenant === NOBODY ? status : { ...status, tenant };
}

function cut(text: string): string {
  return text.slice(0, TEXT_MAX).toWellFormed();
}

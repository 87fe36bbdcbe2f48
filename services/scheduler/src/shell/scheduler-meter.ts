/** What a scheduler says of itself to Prometheus: what stands at the moment of the question. */
import type { RunnerLease } from '@penstock/bus';
import type { Meter, Reading } from '@penstock/telemetry/metrics';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { RunPhase } from '../run/run-phases.ts';
import type { PartitionOwner } from './partition-owner.ts';

export interface SchedulerMeterHost {
  readonly dispatch: Pick<Dispatch, 'waitingSets'>;
  /** Of the partitions that this scheduler has taken, whether they answer yet or not. */
  owners(): Iterable<Pick<PartitionOwner, 'partition' | 'projectionLagMs'>>;
  leases(): Iterable<RunnerLease>;
  /** Whose alone the runner is; undefined: everybody's. */
  tenantOf(runner: string): string | undefined;
  wallNow(): number;
}

/** More sets of labels, and those that no runner has, are one. */
const LABEL_SETS_MAX = 200;
const OTHER = 'other';

export function readScheduler(meter: Meter, host: SchedulerMeterHost): void {
  meter.gauge('penstock_runs_live', () => runsLive(host.owners()));
  meter.gauge('penstock_partitions', () => {
    const owners = [...host.owners()];
    const open = owners.filter(({ partition }) => partition?.open === true).length;
    return [
      { labels: { state: 'open' }, value: open },
      { labels: { state: 'opening' }, value: owners.length - open },
    ];
  });
  meter.gauge('penstock_projection_lag_seconds', () => [
    { labels: {}, value: Math.max(0, ...[...host.owners()].map(({ projectionLagMs }) => projectionLagMs)) / 1_000 },
  ]);
  const queues = onceATurn(() => queuesOf(host));
  meter.gauge('penstock_queue_demand', () =>
    [...queues()].map(([labels, { count }]) => ({ labels: { labels }, value: count })),
  );
  meter.gauge('penstock_queue_oldest_seconds', () =>
    [...queues()].map(([labels, { since }]) => ({
      labels: { labels },
      value: Math.max(0, host.wallNow() - since) / 1_000,
    })),
  );
  meter.gauge('penstock_runner_slots', () => slots(host));
}

/** A look at each partition, however many runs it has. */
function runsLive(owners: Iterable<Pick<PartitionOwner, 'partition'>>): Reading<'penstock_runs_live'>[] {
  const counts = new Map<RunPhase | 'parked', number>([
    ['queued', 0],
    ['running', 0],
    ['ending', 0],
    ['parked', 0],
  ]);
  const add = (phase: RunPhase | 'parked', count: number): void =>
    void counts.set(phase, (counts.get(phase) ?? 0) + count);
  for (const { partition } of owners) {
    if (partition === undefined) continue;
    for (const [phase, count] of partition.phases) add(phase, count);
    add('parked', partition.parkedRuns);
  }
  return [...counts].map(([phase, value]) => ({ labels: { phase }, value }));
}

interface Queue {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** By what stages ask for; a file may invent labels, and none of those becomes a series. */
function queuesOf(host: SchedulerMeterHost): ReadonlyMap<string, Queue> {
  const queues = new Map<string, Queue>();
  const now = host.wallNow();
  for (const { labels, count, since = now, isDeclared } of host.dispatch.waitingSets()) {
    const name = isDeclared ? nameOf(labels) : OTHER;
    const set = queues.has(name) || queues.size < LABEL_SETS_MAX ? name : OTHER;
    const queue = queues.get(set) ?? { count: 0, since: now };
    queues.set(set, { count: queue.count + count, since: Math.min(queue.since, since) });
  }
  return queues;
}

/** Several figures are made of one answer, and are read in one turn. */
function onceATurn<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    if (made === undefined) {
      made = { value: make() };
      setImmediate(() => (made = undefined));
    }
    return made.value;
  };
}

function nameOf(labels: readonly string[]): string {
  return labels.toSorted().join();
}

/** Labels of a tenant's runners are no series: a user names them. */
function slots({
  leases,
  tenantOf,
}: Pick<SchedulerMeterHost, 'leases' | 'tenantOf'>): Reading<'penstock_runner_slots'>[] {
  const bySet = new Map<string, { free: number; busy: number }>();
  for (const { runner, labels, slots: all, attempts } of leases()) {
    const name = tenantOf(runner) === undefined ? nameOf(labels) : OTHER;
    const set = bySet.has(name) || bySet.size < LABEL_SETS_MAX ? name : OTHER;
    const { free, busy } = bySet.get(set) ?? { free: 0, busy: 0 };
    const taken = Math.min(all, attempts.length);
    bySet.set(set, { free: free + all - taken, busy: busy + taken });
  }
  return [...bySet].flatMap(([labels, { free, busy }]) => [
    { labels: { labels, state: 'free' }, value: free },
    { labels: { labels, state: 'busy' }, value: busy },
  ]);
}

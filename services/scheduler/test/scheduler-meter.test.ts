/** What a scheduler says of its queues, whatever stages ask for. */
import { Dispatch, readScheduler, type ReadyStages } from '@penstock/scheduler/testing';
import { Metrics, metricsText } from '@penstock/telemetry/metrics';
import { describe, expect, it } from 'vitest';
import type { PartitionOwner } from '../src/shell/partition-owner.ts';
import { Harness, stage, text } from './support.ts';

const NOW = 1_800_000_000_000;

function waiting(labels: readonly string[], more: Partial<ReadyStages> = {}): ReadyStages {
  const stages: ReadyStages = {
    key: 'k',
    priority: 0,
    labels,
    labelSet: labels.join(','),
    count: 1,
    waits: () => true,
    since: () => NOW - 5_000,
    boundTo: () => undefined,
    grant: () => true,
    rest: () => stages,
    ...more,
  };
  return stages;
}

function runner(dispatch: Dispatch, name: string, labels: readonly string[]): void {
  dispatch.sessionSeen({ runner: name, session: `${name}-s`, labels, slots: 1, attempts: [] });
}

/** As Prometheus has them. */
async function figures(dispatch: Dispatch): Promise<string[]> {
  const metrics = new Metrics({ process: false });
  readScheduler(metrics, {
    dispatch,
    owners: () => [],
    leases: () => [],
    tenantOf: () => undefined,
    wallNow: () => NOW,
  });
  const { body } = await metricsText([await metrics.snapshot()], undefined);
  return body.split('\n').filter((line) => line.startsWith('penstock_queue'));
}

describe('the figures of the queues', () => {
  it('tell the sets that a runner has, of all keys together, and all others as one', async () => {
    const dispatch = new Dispatch();
    runner(dispatch, 'r', ['linux', 'gpu']);
    dispatch.offer(waiting(['linux', 'gpu'], { count: 3 }));
    dispatch.offer(waiting(['linux', 'gpu'], { key: 'l', since: () => NOW - 9_000 }));
    dispatch.offer(waiting(['linux', 'nobody'], { since: () => NOW - 7_000 }));
    dispatch.offer(waiting(['nobody'], { count: 2 }));
    expect(await figures(dispatch)).toEqual([
      'penstock_queue_demand{labels="gpu,linux"} 4',
      'penstock_queue_demand{labels="other"} 3',
      'penstock_queue_oldest_seconds{labels="gpu,linux"} 9',
      'penstock_queue_oldest_seconds{labels="other"} 7',
    ]);
    runner(dispatch, 'n', ['nobody']);
    expect(await figures(dispatch)).toContain('penstock_queue_demand{labels="nobody"} 2');
  });

  it('name a set whose runners have no room for the stage, and one that is bound to a runner that is gone', async () => {
    const dispatch = new Dispatch();
    dispatch.sessionSeen({
      runner: 'r',
      session: 's',
      labels: ['linux'],
      slots: 1,
      attempts: [],
      capacity: { cpu: 1, memoryBytes: 1 },
    });
    dispatch.offer(waiting(['linux'], { labelSet: 'linux, 8 cores', least: { cpu: 8 } }));
    dispatch.offer(waiting(['linux'], { boundTo: () => 'gone' }));
    expect(await figures(dispatch)).toContain('penstock_queue_demand{labels="linux"} 2');
  });

  it('look at no more than some thousand runners for one answer, and remember what they found out for the next', () => {
    const dispatch = new Dispatch();
    for (let index = 0; index < 100; index++) runner(dispatch, `r${index}`, [index % 2 === 0 ? 'even' : 'odd', 'any']);
    let looks = 0;
    const labels: readonly string[] = Object.assign(['even', 'odd'], {
      every: (isThere: (label: string) => boolean) => {
        looks += 1;
        return isThere('even') && isThere('odd');
      },
    });
    for (let set = 0; set < 1_000; set++) dispatch.offer(waiting(labels, { labelSet: `of 50 runners none: ${set}` }));
    dispatch.offer(waiting(['any']));
    const declared = (): number => [...dispatch.waitingSets()].filter(({ isDeclared }) => isDeclared).length;
    expect(declared()).toBe(0);
    expect(looks).toBeGreaterThan(10_000);
    expect(looks).toBeLessThanOrEqual(20_000);
    // Sets that nobody has do not hide one that somebody has for long.
    declared();
    expect(declared()).toBe(1);
    const before = looks;
    expect(declared()).toBe(1);
    expect(looks).toBe(before);
  });
});

it('tells how many runs are in which phase, as their stages go on and they settle', async () => {
  const world = new Harness();
  const metrics = new Metrics({ process: false });
  const owners = (): Iterable<Pick<PartitionOwner, 'partition' | 'projectionLagMs'>> => [
    { partition: world.partition, projectionLagMs: 0 },
  ];
  readScheduler(metrics, {
    dispatch: world.dispatch,
    owners,
    leases: () => [],
    tenantOf: () => undefined,
    wallNow: () => NOW,
  });
  const phases = async (): Promise<string[]> => {
    const { body } = await metricsText([await metrics.snapshot()], undefined);
    return Array.from(
      body.matchAll(/^penstock_runs_live\{phase="(\w+)"\} ([1-9]\d*)$/gmu),
      ([, phase, count]) => `${phase} ${count}`,
    );
  };
  world.session('r1-s', { credits: 1 });
  for (let run = 0; run < 3; run++) world.create(text([stage('a')]));
  world.settle();
  expect(await phases()).toEqual(['queued 2', 'running 1']);
  world.result(world.job(0));
  world.settle();
  expect(await phases()).toEqual(['queued 2', 'ending 1']);
  world.project();
  expect(await phases()).toEqual(['queued 2']);
  world.partition.close();
  expect(await phases()).toEqual([]);
});

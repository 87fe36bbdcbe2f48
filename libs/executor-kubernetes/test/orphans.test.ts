/** Pods that a runner which never came back has left, found by another one. */
import type { V1Pod } from '@kubernetes/client-node';
import { beforeEach, expect, it } from 'vitest';
import type { Cluster } from '../src/cluster/cluster.ts';
import { OrphanSweep } from '../src/sweep.ts';

const MINUTE = 60_000;
/** Of a machine that has been up for a day. */
const NOW = 24 * 60 * MINUTE;

let pods: V1Pod[];
let sweep: OrphanSweep;
const cluster: Pick<Cluster, 'listPods' | 'deletePod'> = {
  listPods: () => Promise.resolve({ pods, version: '1' }),
  deletePod: (name) => {
    pods = pods.filter(({ metadata }) => metadata?.name !== name);
    return Promise.resolve();
  },
};
beforeEach(() => {
  pods = [];
  sweep = new OrphanSweep(cluster as Cluster, (name) => name === 'held');
});

const podOf = (name: string, ended?: Date): V1Pod => ({
  metadata: { name, uid: name, creationTimestamp: new Date(Date.now() - 60 * MINUTE) },
  spec: { activeDeadlineSeconds: 30 * 60, containers: [] },
  status:
    ended === undefined
      ? {}
      : {
          containerStatuses: [
            {
              ...{ name: 'guard', image: '', imageID: '', ready: false, restartCount: 0 },
              state: { terminated: { exitCode: 0, finishedAt: ended } },
            },
          ],
        },
});
const names = (): (string | undefined)[] => pods.map(({ metadata }) => metadata?.name);

it('are swept once they have been seen ended for long, or for longer than they could last; those that are held never', async () => {
  pods = [podOf('ended', new Date()), podOf('running'), podOf('held')];
  await sweep.sweep(NOW);
  await sweep.sweep(NOW + 10 * MINUTE);
  expect(names()).toEqual(['ended', 'running', 'held']);
  await sweep.sweep(NOW + 11 * MINUTE);
  expect(names()).toEqual(['running', 'held']);
  await sweep.sweep(NOW + 40 * MINUTE);
  expect(names()).toEqual(['running', 'held']);
  await sweep.sweep(NOW + 41 * MINUTE);
  expect(names()).toEqual(['held']);
});

it('are none of another runner, whatever the clock of this machine says of when they began and ended', async () => {
  pods = [podOf('begun'), podOf('ended', new Date(Date.now() - 60 * MINUTE))];
  await sweep.sweep(NOW);
  expect(names()).toEqual(['begun', 'ended']);
});

it('that end are looked after for as long again: their runner may be bringing their files out of them', async () => {
  pods = [podOf('pod')];
  await sweep.sweep(NOW);
  pods = [podOf('pod', new Date())];
  await sweep.sweep(NOW + 30 * MINUTE);
  await sweep.sweep(NOW + 40 * MINUTE);
  expect(names()).toEqual(['pod']);
  await sweep.sweep(NOW + 41 * MINUTE);
  expect(names()).toEqual([]);
});

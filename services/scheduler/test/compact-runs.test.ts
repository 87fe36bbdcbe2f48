/** What a run that waits takes in its owner's memory, measured; test/bench/memory.ts does so in a whole scheduler. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapUsed(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const NOTHING = {
  id: '',
  kind: 'runs',
  partition: 0,
  epoch: 1,
  number: 0,
  owner: '',
  minReader: 1,
  at: 0,
  runs: [],
} as const;

/** Bytes of each run, its definition not counted, and the estimate of them. */
function bytesPerRun(yaml: string, count: number): { readonly taken: number; readonly estimated: number } {
  const world = new Harness({ settings: { liveRunsPerKeyMax: 100_000 } });
  Object.assign(world.load, { liveRunsMax: 100_000 });
  const create = (): void => {
    world.create(yaml);
    world.settle();
    // The harness keeps what was sent; of these commits nothing is needed.
    world.appended.fill({ commit: NOTHING, expectedSequence: 0, bytes: 0 });
  };
  /** Twice a second without anything happening, in which runs come to rest. */
  const rest = (): void => {
    for (let second = 0; second < 2; second++) world.later(1_000);
  };
  for (let index = 0; index < 5; index++) create();
  rest();
  const [before, estimatedBefore] = [heapUsed(), world.load.liveBytes];
  for (let index = 0; index < count; index++) create();
  rest();
  const taken = (heapUsed() - before) / count;
  return { taken, estimated: (world.load.liveBytes - estimatedBefore) / count };
}

describe('runs that wait', () => {
  it('2,000 stages take less than 56 KiB, and the estimate by which runs are admitted is above what they take', () => {
    const { taken, estimated } = bytesPerRun(
      text(Array.from({ length: 2_000 }, (_, index) => stage(`s${index}`, { runsOn: ['nobody'] }))),
      40,
    );
    expect(taken).toBeLessThan(56 * 1024);
    expect(estimated).toBeGreaterThan(taken);
    expect(estimated).toBeLessThan(2 * 56 * 1024);
  });

  it('three stages take less than 3 KiB', () => {
    const chain = text([
      stage('a', { runsOn: ['nobody'] }),
      stage('b', { after: ['a'] }),
      stage('c', { after: ['b'] }),
    ]);
    const { taken, estimated } = bytesPerRun(chain, 1_000);
    expect(taken).toBeLessThan(3 * 1024);
    expect(estimated).toBeGreaterThan(taken);
  });
});

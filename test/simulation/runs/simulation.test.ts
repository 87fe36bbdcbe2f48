import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runBatch } from './batch.ts';
import { expectedMarks, SEEDS_DEFAULT } from './expected-marks.ts';
import { simulate } from './simulate.ts';

describe('the simulation', () => {
  it(`finds nothing in ${SEEDS_DEFAULT} worlds, and every fault and rare branch happened in them`, async () => {
    const result = await runBatch({
      from: 1,
      seeds: SEEDS_DEFAULT,
      workers: Math.max(2, availableParallelism()),
      failuresMax: 2,
    });
    expect(result.failures.map(({ report }) => report).join('\n\n')).toBe('');
    expect(result.seeds).toBe(SEEDS_DEFAULT);
    expect(expectedMarks.filter((name) => !result.marks.counts.has(name))).toEqual([]);
  }, 600_000);

  it('lives the same world again from the same seed, step by step', async () => {
    const first = await simulate(17, { traced: true });
    const second = await simulate(17, { traced: true });
    expect(first.lines.length).toBeGreaterThan(10);
    expect(second.lines).toEqual(first.lines);
    expect(second.steps).toBe(first.steps);
  });
});

import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runBatch } from './batch.ts';
import { expectedMarks } from './expected-marks.ts';

const SEEDS = 2_000;

describe('the simulation at length', () => {
  it(`finds nothing in ${SEEDS} worlds, and every fault and rare branch happened in them`, async () => {
    const workers = Math.max(2, availableParallelism());
    const result = await runBatch({ from: 1, seeds: SEEDS, workers, failuresMax: 2 });
    expect(result.failures.map(({ report }) => report).join('\n\n')).toBe('');
    expect(result.seeds).toBe(SEEDS);
    expect(expectedMarks.filter((name) => !result.marks.counts.has(name))).toEqual([]);
  }, 2_400_000);
});

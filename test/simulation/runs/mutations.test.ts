import { describe, expect, it } from 'vitest';
import { runBatch } from './batch.ts';
import { mutations, type Mutation } from '../world/mutations.ts';

/** So many worlds are enough to see each of the broken rules. */
const SEEDS = 200;

describe('the simulation sees a broken rule', () => {
  it.each(Object.entries(mutations) as [Mutation, string][])(
    'notices that %s (%s)',
    async (mutation) => {
      const { failures } = await runBatch({ from: 1, seeds: SEEDS, workers: 2, failuresMax: 1, mutation });
      expect(failures.length).toBeGreaterThan(0);
      expect(failures[0]?.report).toContain('npm run simulate -- --seed');
    },
    120_000,
  );
});

import { expect } from 'vitest';
import type { Mutation } from '../world/mutations.ts';
import { runBatch } from './batch.ts';

/** So many worlds are enough to see each of the broken rules. */
const SEEDS = 200;
/** Where none of the worlds before shows it. */
const FROM: Partial<Record<Mutation, number>> = { 'guard-counts-from-the-line': 101 };

/** Some world with the broken rule fails, and its report says how to live it again. */
export async function expectSeen(mutation: Mutation): Promise<void> {
  const { failures } = await runBatch({
    from: FROM[mutation] ?? 1,
    seeds: SEEDS,
    workers: 2,
    failuresMax: 1,
    mutation,
  });
  expect(failures.length).toBeGreaterThan(0);
  expect(failures[0]?.report).toContain('npm run simulate -- --seed');
}

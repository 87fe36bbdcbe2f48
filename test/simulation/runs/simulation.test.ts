import { describe, expect, it } from 'vitest';
import { runBatch } from './batch.ts';
import { expectedFaults } from './expected-marks.ts';
import { simulate } from './simulate.ts';

/** A sample of the seeds of `simulation.long.test.ts`: enough for each kind of fault, from where their worlds are small. */
const SEEDS = 80;
const FROM = 141;
/** Some 8 s of two processors that have nothing else to do. */
const PATIENT_MS = 360_000;

describe('the simulation', () => {
  it(
    `finds nothing in ${SEEDS} worlds, and every kind of fault happened in them`,
    async () => {
      const result = await runBatch({ from: FROM, seeds: SEEDS, workers: 2, failuresMax: 2 });
      expect(result.failures.map(({ report }) => report).join('\n\n')).toBe('');
      expect(result.seeds).toBe(SEEDS);
      expect(expectedFaults.filter((name) => !result.marks.counts.has(name))).toEqual([]);
    },
    PATIENT_MS,
  );

  it('lives the same world again from the same seed, step by step', async () => {
    const first = await simulate(17, { traced: true });
    const second = await simulate(17, { traced: true });
    expect(first.lines.length).toBeGreaterThan(10);
    expect(second.lines).toEqual(first.lines);
    expect(second.steps).toBe(first.steps);
  });
});

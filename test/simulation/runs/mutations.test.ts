import { describe, it } from 'vitest';
import { mutations, type Mutation } from '../world/mutations.ts';
import { expectSeen } from './expect-seen.ts';

/** One of what stands behind the log, one of the owner's shell, one of the runner, each soon seen; `mutations.long.test.ts` has all of them. */
const SAMPLE: readonly Mutation[] = ['checkpoint-first', 'opens-by-force', 'no-guard'];

describe('the simulation sees a broken rule', () => {
  it.each(SAMPLE.map((mutation) => [mutation, mutations[mutation]] as const))(
    'notices that %s (%s)',
    (mutation) => expectSeen(mutation),
    // Seconds of a machine that has nothing else to do.
    360_000,
  );
});

import { describe, it } from 'vitest';
import { mutations, type Mutation } from '../world/mutations.ts';
import { expectSeen } from './expect-seen.ts';

describe('the simulation sees every broken rule', () => {
  it.each(Object.entries(mutations) as [Mutation, string][])(
    'notices that %s (%s)',
    (mutation) => expectSeen(mutation),
    // Of the processors it has what the tests beside it leave.
    600_000,
  );
});

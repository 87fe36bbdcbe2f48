import type { RunId } from './brands.ts';
import { TaggedError } from '@penstock/errors';

/** Raised where a run's events contradict its state: a broken invariant, never a user's mistake. */
export class RunInvariantError extends TaggedError {
  readonly tag = 'RunInvariantError';
  readonly runId: RunId;

  constructor(runId: RunId, message: string) {
    super(`run ${runId}: ${message}`);
    this.runId = runId;
  }
}

/** A stage's values, filled in, are more than any message carries: a user's mistake that shows only when it is granted. */
export class WorkTooLarge extends TaggedError {
  readonly tag = 'WorkTooLarge';

  constructor(runId: RunId, stage: string) {
    super(`run ${runId}: the values of stage '${stage}' are too large to be sent`);
  }
}

/** What an expression reads comes to more than may be looked at. */
export class TextsTooLong extends TaggedError {
  readonly tag = 'TextsTooLong';

  constructor() {
    super('the texts that an expression reads are too long');
  }
}

/** Closes a switch over a union: a case that was forgotten does not compile. */
export function assertNever(value: never): never {
  throw new TypeError(`unexpected ${JSON.stringify(value)}`);
}

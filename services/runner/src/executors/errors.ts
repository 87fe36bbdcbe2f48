import { TaggedError } from '@penstock/errors';

/** `SERVICE_EXECUTORS` names what this machine has not. */
export class ExecutorMissing extends TaggedError {
  readonly tag = 'ExecutorMissing';

  /** Each with what it lacks, where that is known. */
  constructor(kinds: readonly string[]) {
    super(
      `SERVICE_EXECUTORS asks for ${kinds.join(', ')}, which this machine does not have: install what it needs, or leave it out ` +
        'of the list; without the variable a runner takes what it finds',
    );
  }
}

/** Everything this package throws, told apart by `tag`. */

abstract class ExecutorError extends Error {
  abstract readonly tag: string;
  override get name(): string {
    return this.tag;
  }
}

/** The stage cannot be put to the kernel as it is asked for: too long, or a name that no environment holds. The user's to mend. */
export class UnstartableStage extends ExecutorError {
  readonly tag = 'UnstartableStage';
}

/** A helper did not come up. */
export class HelperFailed extends ExecutorError {
  readonly tag = 'HelperFailed';
}

/** The guard has fired or is gone: its session is over (P15). */
export class GuardGone extends ExecutorError {
  readonly tag = 'GuardGone';
}

/** `$SERVICE_OUTPUT` holds something else than outputs. */
export class BadOutputs extends ExecutorError {
  readonly tag = 'BadOutputs';
  readonly line: number;
  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

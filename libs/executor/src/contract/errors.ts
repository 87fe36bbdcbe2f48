/** Everything that this package throws; `tag` says which of them it is. */
import { TaggedError } from '@penstock/errors';

/** The stage cannot be put to the kernel as it is asked for: too long, or a name that no environment holds. The user's to mend. */
export class UnstartableStage extends TaggedError {
  readonly tag = 'UnstartableStage';
}

/** A helper did not come up. */
export class HelperFailed extends TaggedError {
  readonly tag = 'HelperFailed';
  /** Of a machine that is busy, or short of something at the moment: it says nothing of what can be had there. */
  readonly isPassing: boolean;

  constructor(message: string, options: { readonly isPassing?: boolean } = {}) {
    super(message);
    this.isPassing = options.isPassing === true;
  }
}

/** The guard has fired or is gone: its session is over (P15). */
export class GuardGone extends TaggedError {
  readonly tag = 'GuardGone';
}

/** `$SERVICE_OUTPUT` holds something else than outputs. `line`: from 1; 0 where it is about the whole. */
export class BadOutputs extends TaggedError {
  readonly tag: 'BadOutputs' | 'TooLargeOutputs' = 'BadOutputs';
  readonly line: number;
  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/** It holds more than is kept: another attempt would as well. */
export class TooLargeOutputs extends BadOutputs {
  override readonly tag = 'TooLargeOutputs';
  constructor(message: string) {
    super(message, 0);
  }
}

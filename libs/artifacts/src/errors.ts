import { TaggedError } from '@penstock/errors';

/** A stage's files could not be kept, or handed on. The message is for the stage's log. */
export class ArtifactsFailed extends TaggedError {
  readonly tag = 'ArtifactsFailed';
  /** What the stage fails with. */
  readonly reason: 'artifacts' | 'quota';
  constructor(reason: 'artifacts' | 'quota', message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

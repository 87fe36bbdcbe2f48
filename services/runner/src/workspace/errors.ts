/** What keeps a stage from being started that is not the runner's own fault. */
import { TaggedError } from '@penstock/errors';

/** Its message goes into the log of the stage. */
export class NotPrepared extends TaggedError {
  readonly tag = 'NotPrepared';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

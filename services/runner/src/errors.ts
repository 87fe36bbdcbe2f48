/** What keeps a stage from being started that is not the runner's own fault. */

/** Its message goes into the log of the stage. */
export class NotPrepared extends Error {
  readonly _tag = 'NotPrepared';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'NotPrepared';
  }
}

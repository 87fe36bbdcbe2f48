/** What the container executor throws; `tag` says which of them it is. */
import { TaggedError } from '@penstock/errors';

/** The engine refused a call, or did not answer. `status` is 0 where there was no answer. */
export class EngineFailed extends TaggedError {
  readonly tag = 'EngineFailed';
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** There is no such image, its registry does not answer, or does not give it. */
export class ImageFailed extends TaggedError {
  readonly tag = 'ImageFailed';
}

/** A service did not come up, or was not ready in time. */
export class ServiceFailed extends TaggedError {
  readonly tag = 'ServiceFailed';
}

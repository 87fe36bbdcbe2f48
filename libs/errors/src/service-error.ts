/**
 * What a service refuses or cannot do, by kind: thrown in a service, carried between services over the bus, and answered to
 * the client. `ERROR_CODES` is the one registry of codes at the edge: the GraphQL code of each kind, its HTTP status and the
 * snake_case word of REST bodies.
 */
import { TaggedError } from './tagged-error.ts';

export const ERROR_CODES = {
  UNAUTHENTICATED: { status: 401, rest: 'unauthenticated' },
  FORBIDDEN: { status: 403, rest: 'forbidden' },
  NOT_FOUND: { status: 404, rest: 'not_found' },
  BAD_USER_INPUT: { status: 400, rest: 'bad_request' },
  CONFLICT: { status: 409, rest: 'conflict' },
  QUOTA_EXCEEDED: { status: 429, rest: 'quota_exceeded' },
  RATE_LIMITED: { status: 429, rest: 'rate_limited' },
  UNAVAILABLE: { status: 503, rest: 'unavailable' },
  INTERNAL_SERVER_ERROR: { status: 500, rest: 'internal_server_error' },
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;

/** Used where a refusal names no better time: long enough for a new owner to open a partition, short enough to wait by hand. */
const RETRY_AFTER_SECS = 2;

/** Its message is meant for the client; `extensions` stand beside the code in GraphQL, as `details` in REST. */
export abstract class ServiceError extends TaggedError {
  abstract readonly code: ErrorCode;
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor(message: string, extensions: Readonly<Record<string, unknown>> = {}, options?: ErrorOptions) {
    super(message, options);
    this.extensions = extensions;
  }
}

export class Unauthenticated extends ServiceError {
  readonly tag = 'Unauthenticated';
  readonly code = 'UNAUTHENTICATED';
  constructor(message = 'A valid access token is required: send it as "Authorization: Bearer <token>".') {
    super(message);
  }
}

export class Forbidden extends ServiceError {
  readonly tag = 'Forbidden';
  readonly code = 'FORBIDDEN';
}

export class NotFound extends ServiceError {
  readonly tag = 'NotFound';
  readonly code = 'NOT_FOUND';
}

export class BadUserInput extends ServiceError {
  readonly tag = 'BadUserInput';
  readonly code = 'BAD_USER_INPUT';
}

export class Conflict extends ServiceError {
  readonly tag = 'Conflict';
  readonly code = 'CONFLICT';
}

export class QuotaExceeded extends ServiceError {
  readonly tag = 'QuotaExceeded';
  readonly code = 'QUOTA_EXCEEDED';
}

export class RateLimited extends ServiceError {
  readonly tag = 'RateLimited';
  readonly code = 'RATE_LIMITED';
}

/** Nothing was decided, or it is not known what was: worth repeating after `retryAfterSecs`. */
export class Unavailable extends ServiceError {
  readonly tag = 'Unavailable';
  readonly code = 'UNAVAILABLE';
  readonly retryAfterSecs: number;

  constructor(
    message: string,
    options: ErrorOptions & { readonly retryAfterSecs?: number | undefined; readonly runId?: string | undefined } = {},
  ) {
    const retryAfter = options.retryAfterSecs ?? RETRY_AFTER_SECS;
    super(
      message,
      { retryAfter, ...(options.runId === undefined ? {} : { runId: options.runId }) },
      'cause' in options ? { cause: options.cause } : undefined,
    );
    this.retryAfterSecs = retryAfter;
  }
}

/** The error of a code that came from another service. */
export function serviceErrorOf(
  code: ErrorCode,
  message: string,
  extensions: Readonly<Record<string, unknown>> = {},
): ServiceError {
  switch (code) {
    case 'UNAUTHENTICATED':
      return new Unauthenticated(message);
    case 'FORBIDDEN':
      return new Forbidden(message, extensions);
    case 'NOT_FOUND':
      return new NotFound(message, extensions);
    case 'BAD_USER_INPUT':
      return new BadUserInput(message, extensions);
    case 'CONFLICT':
      return new Conflict(message, extensions);
    case 'QUOTA_EXCEEDED':
      return new QuotaExceeded(message, extensions);
    case 'RATE_LIMITED':
      return new RateLimited(message, extensions);
    case 'UNAVAILABLE':
      return new Unavailable(message, { retryAfterSecs: Number(extensions['retryAfter'] ?? RETRY_AFTER_SECS) });
    case 'INTERNAL_SERVER_ERROR':
      return new Unavailable(message);
  }
}

/**
 * What a service refuses, by kind. `ERROR_CODES` is the one registry of codes at the edge: the GraphQL code of each
 * kind, its HTTP status and the snake_case word of REST bodies.
 */

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

/** Of a refusal that says nothing better: long enough for a new owner to open, short enough to be tried by hand. */
export const RETRY_AFTER_SECS = 2;

/** Its message is meant for the client; `extensions` stand beside the code in GraphQL, as `details` in REST. */
export abstract class HttpError extends Error {
  abstract readonly code: ErrorCode;
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor(message: string, extensions: Readonly<Record<string, unknown>> = {}, options?: ErrorOptions) {
    super(message, options);
    this.extensions = extensions;
  }
}

export class Unauthenticated extends HttpError {
  override readonly name = 'Unauthenticated';
  readonly code = 'UNAUTHENTICATED';
  constructor(message = 'A valid access token is required: send it as "Authorization: Bearer <token>".') {
    super(message);
  }
}

export class Forbidden extends HttpError {
  override readonly name = 'Forbidden';
  readonly code = 'FORBIDDEN';
}

export class NotFound extends HttpError {
  override readonly name = 'NotFound';
  readonly code = 'NOT_FOUND';
}

export class BadUserInput extends HttpError {
  override readonly name = 'BadUserInput';
  readonly code = 'BAD_USER_INPUT';
}

export class Conflict extends HttpError {
  override readonly name = 'Conflict';
  readonly code = 'CONFLICT';
}

export class QuotaExceeded extends HttpError {
  override readonly name = 'QuotaExceeded';
  readonly code = 'QUOTA_EXCEEDED';
}

export class RateLimited extends HttpError {
  override readonly name = 'RateLimited';
  readonly code = 'RATE_LIMITED';
}

/** Nothing was decided, or it is not known what was: worth repeating after `retryAfterSecs`. */
export class Unavailable extends HttpError {
  override readonly name = 'Unavailable';
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
export function httpErrorOf(
  code: ErrorCode,
  message: string,
  extensions: Readonly<Record<string, unknown>> = {},
): HttpError {
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

/** An error and what led to it, for a log: never for a client. */
export function causeChain(error: unknown): string[] {
  const chain: string[] = [];
  for (
    let at: unknown = error;
    at !== undefined && at !== null && chain.length < 10;
    at = at instanceof Error ? at.cause : undefined
  ) {
    chain.push(at instanceof Error ? (at.stack ?? `${at.name}: ${at.message}`) : String(at));
  }
  return chain;
}

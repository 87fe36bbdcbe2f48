/**
 * An error and everything that caused it. `errorChain` makes a value for the log: each error's kind, message and own
 * fields. `causesOf` lists the same errors for those who write them as text. Neither is for a client.
 */

/** The chain is cut here, so that a cycle of causes ends. */
const CAUSES_MAX = 8;
/** Of an AggregateError, at most this many inner errors are shown. */
const ERRORS_MAX = 10;

export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
  readonly errors?: readonly LoggedError[];
  readonly [field: string]: unknown;
}

/** The error first, then what caused it, then what caused that. */
export function causesOf(error: unknown): unknown[] {
  const causes = [error];
  let last = error;
  while (causes.length <= CAUSES_MAX && last instanceof Error && last.cause !== undefined) {
    last = last.cause;
    causes.push(last);
  }
  return causes;
}

export function errorChain(error: unknown): LoggedError {
  return chainFrom(error, 0);
}

function chainFrom(error: unknown, depth: number): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: describe(error) };
  const deeper = depth < CAUSES_MAX;
  return {
    ...plainFields(error),
    type: error.name,
    message: error.message,
    // The stack of the innermost cause says where it happened; the chain itself says who passed it on.
    ...(error.stack === undefined || (error.cause instanceof Error && deeper) ? {} : { stack: error.stack }),
    ...(error.cause === undefined || !deeper ? {} : { cause: chainFrom(error.cause, depth + 1) }),
    ...(error instanceof AggregateError && deeper
      ? { errors: error.errors.slice(0, ERRORS_MAX).map((inner) => chainFrom(inner, depth + 1)) }
      : {}),
  };
}

function plainFields(error: Error): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(error).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value)),
  );
}

function describe(value: unknown): string {
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  } catch {
    return Object.prototype.toString.call(value);
  }
}

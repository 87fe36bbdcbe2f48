/** An error as a value for a log: its kind, its message, its own fields, and the same of what caused it. */

/** A cycle, or a layer that wraps in a loop, ends here. */
const CAUSES_MAX = 8;
const ERRORS_MAX = 10;

export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
  readonly errors?: readonly LoggedError[];
  readonly [field: string]: unknown;
}

export function errorChain(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: describe(error) };
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(error)) {
    const value = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') fields[name] = value;
  }
  const deeper = depth < CAUSES_MAX;
  return {
    ...fields,
    type: error.name,
    message: error.message,
    // The stack of what caused it says where; those above say who passed it on, which the chain says as well.
    ...(error.stack === undefined || (error.cause instanceof Error && deeper) ? {} : { stack: error.stack }),
    ...(error.cause === undefined || !deeper ? {} : { cause: errorChain(error.cause, depth + 1) }),
    ...(error instanceof AggregateError && deeper
      ? { errors: error.errors.slice(0, ERRORS_MAX).map((inner) => errorChain(inner, depth + 1)) }
      : {}),
  };
}

function describe(value: unknown): string {
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  } catch {
    return Object.prototype.toString.call(value);
  }
}

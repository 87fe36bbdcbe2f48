/**
 * Errors as GraphQL answers them. A refusal of ours keeps its message and code; what the client's document or variables
 * did wrong has the usual codes; anything else is answered with a correlation id, and its causes go to the log.
 */
import { randomUUID } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import { type ErrorCode, ServiceError } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import { currentRequest } from '@penstock/telemetry/request';

export type AnsweredCode = ErrorCode | 'GRAPHQL_PARSE_FAILED' | 'GRAPHQL_VALIDATION_FAILED';

export interface AnsweredError {
  readonly message: string;
  readonly locations?: readonly { readonly line: number; readonly column: number }[] | undefined;
  readonly path?: readonly (string | number)[] | undefined;
  readonly extensions: { readonly code: AnsweredCode; readonly [key: string]: unknown };
}

export interface GraphqlAnswer {
  readonly data: Record<string, unknown> | null;
  readonly errors?: readonly AnsweredError[] | undefined;
}

export interface GraphqlOutcome {
  readonly answer: GraphqlAnswer;
  /** Nothing was executed: the document, the variables or the choice of an operation were wrong. */
  readonly refused: boolean;
}

/** What executing gave. Errors of ours come wrapped with the place where they arose. */
export interface GraphqlExecution {
  readonly data?: Record<string, unknown> | null | undefined;
  readonly errors?: readonly GraphQLError[] | undefined;
}

export function outcomeOf(execution: GraphqlExecution, log: Log): GraphqlOutcome {
  const { data, errors } = execution;
  if (errors === undefined || errors.length === 0) return { answer: { data: data ?? null }, refused: false };
  const answered = errors.map((error) => executionError(error, log));
  // Without a path nothing was executed yet.
  const isRefused = errors.every(({ path }) => path === undefined) && (data === null || data === undefined);
  return { answer: { data: dataBeside(data, answered), errors: answered }, refused: isRefused };
}

export function refused(errors: readonly AnsweredError[]): GraphqlOutcome {
  return { answer: { data: null, errors }, refused: true };
}

/** Names of the schema that come with errors are a way of reading it: none, where introspection is off. */
export function withoutSuggestions(errors: readonly AnsweredError[]): AnsweredError[] {
  return errors.map((error) =>
    error.path === undefined ? { ...error, message: error.message.replace(/ Did you mean .*\?$/su, '') } : error,
  );
}

export function answerError(code: AnsweredCode, message: string, error?: GraphQLError): AnsweredError {
  return { message, ...(error?.locations === undefined ? {} : { locations: error.locations }), extensions: { code } };
}

export function gatewayAnswer(error: ServiceError): GraphqlAnswer {
  return { data: null, errors: [{ message: error.message, extensions: { ...error.extensions, code: error.code } }] };
}

export function internalError(error: unknown, log: Log): AnsweredError {
  const correlationId = currentRequest()?.id ?? randomUUID();
  log.error({ correlationId, err: error }, 'a GraphQL operation failed');
  return {
    message: `Something went wrong here; ask the operator about ${correlationId}.`,
    extensions: { code: 'INTERNAL_SERVER_ERROR', correlationId },
  };
}

function executionError(error: GraphQLError, log: Log): AnsweredError {
  const place = {
    ...(error.locations === undefined ? {} : { locations: error.locations }),
    ...(error.path === undefined ? {} : { path: error.path }),
  };
  const cause: unknown = error.originalError;
  if (cause instanceof ServiceError)
    return { message: cause.message, ...place, extensions: { ...cause.extensions, code: cause.code } };
  // Without a path nothing was executed yet: the variables do not fit.
  if (error.path === undefined) return { message: error.message, ...place, extensions: { code: 'BAD_USER_INPUT' } };
  return { ...internalError(cause ?? error, log), ...place };
}

/**
 * An operation that was refused for its authentication, or of which nothing is left, has `data: null`, as every error
 * that the specification shows.
 */
function dataBeside(
  data: Record<string, unknown> | null | undefined,
  errors: readonly AnsweredError[],
): Record<string, unknown> | null {
  if (data === null || data === undefined) return null;
  if (errors.some(({ extensions }) => extensions.code === 'UNAUTHENTICATED')) return null;
  return Object.values(data).every((value) => value === null) ? null : data;
}

/** What every resolver is given, and how arguments are read: all are nullable in the schema, and refused here. */
import { BadUserInput } from '@penstock/errors';
import type { Caller } from '@penstock/identity';
import type { OperationWork } from './operation-work.ts';

export interface GraphqlContext {
  readonly caller: Caller;
  /** The client's, as far as proxies are trusted; for the audit log. */
  readonly address: string;
  /** Aborted when the client has closed the connection before its answer. */
  readonly clientGone: AbortSignal;
  readonly work: OperationWork;
}

export type Maybe<T> = T | null | undefined;

/** Throws `BadUserInput` where it is missing. */
export function given(value: Maybe<string>, name: string): string {
  if (value === null || value === undefined) throw new BadUserInput(`The argument '${name}' is missing.`);
  // Half a surrogate pair is in no name and no id, and no store takes it.
  return value.toWellFormed();
}

/** Cut to the maximum; below 1 it is `BadUserInput`. */
export function limitOf(
  limit: Maybe<number>,
  bounds: { readonly default: number; readonly max: number },
  name = 'limit',
): number {
  if (limit === null || limit === undefined) return bounds.default;
  if (limit < 1) throw new BadUserInput(`'${name}' is ${limit}; it must be 1 or more.`);
  return Math.min(limit, bounds.max);
}

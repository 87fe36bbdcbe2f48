/** What the ingest refuses, or cannot do yet. */
import { TaggedError } from '@penstock/errors';
import { BadFile, GitError, type GitErrorCode } from '@penstock/git';

/** 401 `invalid_signature`: the request is not signed as it has to be. */
export class InvalidSignature extends TaggedError {
  readonly tag = 'InvalidSignature';
}

/** Told to the sender, and kept with the delivery. */
export interface DeliveryError {
  readonly code:
    | 'address_not_allowed'
    | 'repository_not_allowed'
    | 'checkout'
    | 'pipeline_file'
    | 'quota'
    | 'quarantined';
  readonly message: string;
}

/** Answers the path of the refused file, where it is one. */
export function gitPathOf(error: unknown): string | undefined {
  return error instanceof BadFile ? error.path : undefined;
}

/** The code of a refusal of `@penstock/git`; null: it is no refusal, but a fault of ours or of the machine. */
export function gitCodeOf(error: unknown): GitErrorCode | null {
  return error instanceof GitError ? error.code : null;
}

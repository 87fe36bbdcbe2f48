/** What the ingest refuses, or cannot do yet. */
import { TaggedError } from '@penstock/errors';
import { BadFile, GitError, type GitErrorCode } from '@penstock/git';

/** 401 `invalid_signature`: the request is not signed as it has to be. */
export class InvalidSignature extends TaggedError {
  readonly tag = 'InvalidSignature';
}

/** 413 `payload_too_large`: more than a body of this kind may have. */
export class BodyTooLarge extends TaggedError {
  readonly tag = 'BodyTooLarge';
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    super(`An unsigned delivery may have at most ${bytesMax} bytes; sign it to send more.`);
    this.bytesMax = bytesMax;
  }
}

/** The ref of a pull request does not stand at the delivery's commit, and may soon: to be looked at again. */
export class HeadElsewhere extends TaggedError {
  readonly tag = 'HeadElsewhere';
}

/** The sender is answered with it, and it is kept with the delivery. */
export interface DeliveryError {
  readonly code:
    | 'address_not_allowed'
    | 'repository_not_allowed'
    | 'unproved'
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

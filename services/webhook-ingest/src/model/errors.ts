/** What the ingest refuses, or cannot do yet. */

/** 401 `invalid_signature`: the request is not signed as it has to be. */
export class InvalidSignature extends Error {
  readonly tag = 'InvalidSignature';
  override readonly name = 'InvalidSignature';
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

/** Of the refused file, where it is one. */
export function gitPathOf(error: unknown): string | undefined {
  const { path } = (typeof error === 'object' && error !== null ? error : {}) as { readonly path?: unknown };
  return typeof path === 'string' ? path : undefined;
}

/** The code of a refusal of `@penstock/git`; null: it is no refusal, but a fault of ours or of the machine. */
export function gitCodeOf(error: unknown): string | null {
  const { code, _tag: tag } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly _tag?: unknown;
  };
  return tag === 'GitError' && typeof code === 'string' ? code : null;
}

/** What a connected repository is read with, where its user has named a secret for that: as auth gives it to who reads it. */

export interface CloneSecret {
  /** Of the secret. */
  readonly name: string;
  readonly opens: { readonly user: string; readonly password: string } | { readonly key: string };
}

/** `clone`: the ingest asks, and nobody else. */
export interface CloneRequest {
  readonly userId: string;
  readonly provider: string;
  readonly repository: string;
  /** Where it is to be read from. */
  readonly cloneUrl: string;
  /** An X25519 public key, base64url: the answer is sealed to it. */
  readonly sealTo: string;
}

/** `sealed`: a JWE of a `CloneSecret`. `none`: the repository has no secret of its own. `why`: a clause for who reads the run. */
export type CloneAnswer =
  | { readonly kind: 'sealed'; readonly sealed: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'refused'; readonly why: string };

/** In lower case and without a port; '' for a path of this machine. */
export function hostOfClone(cloneUrl: string): string {
  return URL.canParse(cloneUrl) ? new URL(cloneUrl).hostname.replace(/^\[|\]$/gu, '').toLowerCase() : '';
}

/** The end of a sentence that says what a host has refused. */
export function cloneSecretRemedy(name: string): string {
  return `it was asked with the secret ${name}, which the repository is connected with: set one that may read it (penstock secret set ${name})`;
}

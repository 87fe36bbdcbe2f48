/** What the gateway asks of auth about the keys that secrets are kept under. No answer holds a key. */

export interface MasterKeyView {
  /** The first 16 hex digits of the SHA-256 of its bytes. */
  readonly id: string;
  /** `FIRST` seals what is new, `OTHER` is there to read, `MISSING` is held by no process of auth. */
  readonly state: 'FIRST' | 'OTHER' | 'MISSING';
  /** Secrets and signing keys that are still kept under it; not counted (0) of the first. */
  readonly sealed: number;
  /** Processes of auth that seal under it. */
  readonly usedBy: number;
  readonly mayGo: boolean;
}

export interface MasterKeysView {
  readonly keys: readonly MasterKeyView[];
  /** Of auth: those that live, and those that were killed in the last two hours. */
  readonly processes: number;
  /** Whether all of them seal under the same key. */
  readonly agree: boolean;
}

export interface MasterKeyCalls {
  readonly 'keys.state': { readonly request: Record<string, never>; readonly answer: MasterKeysView };
  /** Has everything sealed anew under the first key, which goes on after the answer. UNAVAILABLE: there is no key. */
  readonly 'keys.rotate': {
    readonly request: { readonly actor: string; readonly ip?: string | undefined };
    readonly answer: MasterKeysView;
  };
}

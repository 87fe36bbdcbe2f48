/** What the gateway asks of auth about the secrets of stages. No answer holds a value. */

/** What a secret is for; each part that is there makes it narrower. */
export interface SecretScope {
  readonly tenant: string;
  /** `<provider>/<path>` */
  readonly repository?: string | undefined;
  readonly pipeline?: string | undefined;
}

export interface SecretInfo {
  readonly name: string;
  readonly repository: string | null;
  readonly pipeline: string | null;
  /** Null: of any ref, and of none. */
  readonly refs: readonly string[] | null;
  /** ISO 8601, as the others. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** When a stage was last given it. */
  readonly lastUsedAt: string | null;
}

/** Who asks, for the audit log. */
interface Asker {
  readonly actor: string;
  readonly ip?: string | undefined;
}

export interface SecretCalls {
  /** BAD_USER_INPUT: name, value, scope or refs. CONFLICT: too many. UNAVAILABLE: the server has no key to keep it under. */
  readonly 'secrets.set': {
    readonly request: SecretScope &
      Asker & { readonly name: string; readonly value: string; readonly refs?: readonly string[] | undefined };
    readonly answer: SecretInfo;
  };
  /** False: there was none of this name in exactly this scope. */
  readonly 'secrets.delete': {
    readonly request: SecretScope & Asker & { readonly name: string };
    readonly answer: { readonly deleted: boolean };
  };
  /** By name; with a repository those of this repository alone. */
  readonly 'secrets.list': {
    readonly request: Pick<SecretScope, 'tenant' | 'repository'>;
    readonly answer: { readonly secrets: readonly SecretInfo[] };
  };
}

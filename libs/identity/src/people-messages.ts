/** What auth answers to administrators about the people who use an installation. */

export interface SuspendedUser {
  readonly id: string;
  readonly login: string;
  /** Who has done it, as the audit log names people. */
  readonly suspendedBy: string;
  /** ISO 8601. */
  readonly suspendedAt: string;
}

/** What auth had of a user that it has deleted. */
export interface ForgottenUser {
  readonly sessions: number;
  readonly tokens: number;
  readonly secrets: number;
  /** Accounts at identity providers. */
  readonly identities: number;
  readonly grantsGiven: number;
  readonly grantsReceived: number;
}

interface Named {
  /** By what others let the user into their repositories, or the user's id. */
  readonly login: string;
  readonly actor: string;
  readonly ip?: string | undefined;
}

export interface PeopleCalls {
  /** From the answer on nothing that the user was given counts; safe to repeat. NOT_FOUND: nobody of this name. BAD_USER_INPUT: the caller itself. */
  readonly 'user.suspend': { readonly request: Named; readonly answer: SuspendedUser };
  /** `lifted`: false where the user was not suspended. NOT_FOUND: nobody of this name. */
  readonly 'user.unsuspend': { readonly request: Named; readonly answer: { readonly lifted: boolean } };
  /**
   * Shuts the user out for good, before anything of it is deleted. NOT_FOUND: nobody of this name; one who is deleted already is found by
   * the id. BAD_USER_INPUT: the caller itself.
   */
  readonly 'user.delete': { readonly request: Named; readonly answer: { readonly id: string; readonly login: string } };
  /** What auth has of a user who is shut out for good; safe to repeat. CONFLICT: not shut out for good. */
  readonly 'user.forget': {
    readonly request: { readonly userId: string; readonly actor: string; readonly ip?: string | undefined };
    readonly answer: ForgottenUser;
  };
  /** Deletes all secrets of a tenant, all its runner tokens, and of a user's tenant its personal tokens; who may log in still may. Safe to repeat. */
  readonly 'tenant.forget': {
    readonly request: { readonly tenant: string };
    /** `tokens`: the ids of those that are revoked now. */
    readonly answer: { readonly secrets: number; readonly tokens: readonly string[]; readonly runnerTokens: number };
  };
  /** Whether the user of this id is shut out; one that does not exist is not. */
  readonly 'user.is-suspended': {
    readonly request: { readonly userId: string };
    readonly answer: { readonly suspended: boolean };
  };
  /** The latest first, at most 1,000. */
  readonly 'users.suspended': {
    readonly request: Record<string, never>;
    readonly answer: { readonly users: readonly SuspendedUser[] };
  };
}

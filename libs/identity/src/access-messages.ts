/** What auth answers about who else may work on a repository that a user has connected. */

/** Each may what those before it may. */
export const ACCESS_ROLES = ['read', 'trigger', 'approve', 'admin'] as const;
export type AccessRole = (typeof ACCESS_ROLES)[number];

/** A repository as one of its owners has connected it. */
export interface OwnedRepository {
  /** Of the user who has connected it. */
  readonly tenant: string;
  readonly provider: string;
  readonly repository: string;
}

/** A role of somebody at another's repository. */
export interface Grant extends OwnedRepository {
  readonly role: AccessRole;
}

export interface AccessEntry {
  /** As it was given, in lower case: a login at the identity provider, or an email address that it has verified. */
  readonly login: string;
  readonly role: AccessRole;
  /** Who has given it last, as the audit log names people. */
  readonly grantedBy: string;
  /** ISO 8601. */
  readonly grantedAt: string;
}

interface Asker {
  readonly actor: string;
  readonly ip?: string | undefined;
}

export interface AccessCalls {
  /** Of a user, by its id: what others let it do. */
  readonly 'access.of': {
    readonly request: { readonly userId: string };
    readonly answer: { readonly grants: readonly Grant[] };
  };
  readonly 'access.list': {
    readonly request: OwnedRepository;
    readonly answer: { readonly access: readonly AccessEntry[] };
  };
  /** BAD_USER_INPUT: no login, no role. CONFLICT: too many of one. Answered when every gateway can know. */
  readonly 'access.grant': {
    readonly request: Asker & OwnedRepository & { readonly login: string; readonly role: string };
    readonly answer: AccessEntry;
  };
  /** Answered when every gateway can know; false: there was none. */
  readonly 'access.revoke': {
    readonly request: Asker & OwnedRepository & { readonly login: string };
    readonly answer: { readonly revoked: boolean };
  };
  /** A user gives up its own; false: there was none. */
  readonly 'access.leave': {
    readonly request: Asker & OwnedRepository & { readonly userId: string };
    readonly answer: { readonly revoked: boolean };
  };
  /** The repository is connected no more. */
  readonly 'access.end': {
    readonly request: Asker & OwnedRepository;
    readonly answer: { readonly ended: number };
  };
}

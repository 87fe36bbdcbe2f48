/** What identity providers say of accounts. */

/** At GitHub and GitLab a login is one account's alone; at an OpenID Connect issuer it is whatever the account says it is. */
export type ProviderKind = 'github' | 'gitlab' | 'oidc';

/** What a provider says of an account. Unknown texts are ''. */
export interface Profile {
  /** Never changes and is never given to another account. */
  readonly subject: string;
  readonly login: string;
  readonly name: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly avatarUrl: string;
  /** Which of the organisations (GitHub) or groups (GitLab) that were asked about the account is a member of. */
  readonly organizations: readonly string[];
}

/** What a provider says of an account. Unknown texts are ''. */
export interface Profile {
  /** Never changes and is never given to another account. */
  readonly subject: string;
  readonly login: string;
  readonly name: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly avatarUrl: string;
}

/**
 * What other services ask of auth (`callService(bus, 'auth', verb, request)`), and what stands in the bucket of
 * revocations. Refusals come back as the `ServiceError`s named here.
 */
import type { AccessCalls } from './access-messages.ts';
import type { CallerUser, TokenScope } from './callers.ts';
import type { MasterKeyCalls } from './master-key-messages.ts';
import type { PeopleCalls } from './people-messages.ts';
import type { RunnerTokenCalls } from './runner-messages.ts';
import type { SecretCalls } from './secret-messages.ts';

/** The claims of an access token beside `exp`, `iat` and `jti`. */
export interface AccessClaims {
  /** The user's id. */
  readonly sub: string;
  /** The session it was given out in; revoked with it. */
  readonly sid: string;
  readonly email: string;
  readonly tier: string;
  readonly admin: boolean;
  /** When it was issued, in milliseconds since 1970: `iat` has whole seconds, too coarse for who logs in right after a logout. */
  readonly at: number;
}

/** HS256 by `JWT_SECRET`; a token that differs in any of these is refused. */
export const ACCESS_TOKEN = {
  algorithm: 'HS256',
  type: 'at+jwt',
  issuer: 'penstock',
  audience: 'penstock-api',
  lifetimeSecs: 15 * 60,
} as const;

/** Begins every personal token; 31 base62 digits of a random value follow, then 6 of their CRC32. */
export const PERSONAL_TOKEN_PREFIX = 'svc_';

/** Each verb of auth with its question and its answer. */
export interface AuthCalls extends SecretCalls, RunnerTokenCalls, AccessCalls, PeopleCalls, MasterKeyCalls {
  /** NOT_FOUND: there is no such user. */
  readonly user: { readonly request: { readonly id: string }; readonly answer: AuthUser };
  /** By what others name a user: what the identity provider vouches for, of the embedded one the login; in lower case; and what the user is called. NOT_FOUND: there is no such user. */
  readonly names: {
    readonly request: { readonly id: string };
    readonly answer: { readonly names: readonly string[]; readonly by: string };
  };
  /** Whether the session lives, for a gateway that cannot hear of revocations: false where it never was or has ended. */
  readonly session: {
    readonly request: { readonly sid: string };
    readonly answer: { readonly live: boolean; readonly userId: string | null };
  };
  /** Of the token's text, as sent. UNAUTHENTICATED: unknown or revoked. */
  readonly token: { readonly request: { readonly hash: string }; readonly answer: TokenIdentity };
  /** When tokens were last used; at most 1,000 at a time. Later times win, unknown tokens are passed over. */
  readonly 'token.used': {
    readonly request: { readonly used: readonly { readonly tokenId: string; readonly at: number }[] };
    readonly answer: null;
  };
  readonly 'tokens.list': {
    readonly request: { readonly userId: string };
    readonly answer: { readonly tokens: readonly TokenInfo[] };
  };
  /** `expires`: a duration such as 90d. BAD_USER_INPUT: an empty or overlong name, no scope or an unknown one, a bad duration. CONFLICT: too many tokens already. */
  readonly 'tokens.create': {
    readonly request: {
      readonly userId: string;
      readonly name: string;
      readonly scopes: readonly string[];
      readonly expires?: string | undefined;
      readonly ip?: string | undefined;
    };
    readonly answer: CreatedToken;
  };
  /** NOT_FOUND: no such token, or another user's. Answered when every watcher can know. */
  readonly 'tokens.revoke': {
    readonly request: { readonly userId: string; readonly id: string; readonly ip?: string | undefined };
    readonly answer: { readonly revoked: true };
  };
  /** All of the user's; their ids. */
  readonly 'tokens.revoke-all': {
    readonly request: { readonly userId: string; readonly ip?: string | undefined };
    readonly answer: { readonly revoked: readonly string[] };
  };
}
export type AuthVerb = keyof AuthCalls;

export interface AuthUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  /** The name at the identity provider. */
  readonly login: string;
  readonly avatarUrl: string;
  readonly tier: string;
  readonly isAdmin: boolean;
  /** ISO 8601. */
  readonly createdAt: string;
}

export interface TokenIdentity {
  /** Without a session. */
  readonly user: CallerUser;
  readonly scopes: readonly TokenScope[];
  readonly tokenId: string;
  /** Milliseconds since 1970; absent: it has no end. */
  readonly expiresAt?: number | undefined;
}

export interface TokenInfo {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** ISO 8601. */
  readonly createdAt: string;
  /** Null: it has no end. */
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
}

export interface CreatedToken extends Omit<TokenInfo, 'lastUsedAt'> {
  /** Shown this once, kept nowhere. */
  readonly token: string;
}

/** Keys of the bucket `revocations`: `session.<sid>`, `user.<userId>`, `token.<tokenId>`; `access.<userId>`: what others let the user do has changed; `suspended.<userId>`. */
export const revocationKeys = {
  session: (sessionId: string) => `session.${sessionId}`,
  user: (userId: string) => `user.${userId}`,
  token: (tokenId: string) => `token.${tokenId}`,
  access: (userId: string) => `access.${userId}`,
  suspended: (userId: string) => `suspended.${userId}`,
} as const;

/**
 * The value at each of them. A session's or a token's: all that belongs to it is dead, whatever the time says (a logout
 * writes one for each session, so that clocks that differ let nothing through). A user's: what was issued at or before. A
 * suspended user's: everything, or nothing any more where it is 0.
 */
export interface Revocation {
  /** Milliseconds since 1970. */
  readonly before: number;
}

/** A little over the life of an access token, clock differences included: after it nothing is left to be refused. */
export const REVOCATION_TTL_MS = 17 * 60_000;

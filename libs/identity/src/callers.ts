/**
 * Who is asking. A token is turned into a `Caller` in this one place; everything else asks the caller what it may do
 * (`caller-rights.ts`), so that a further way of authentication is one more `Authenticator`.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { reachOf, SERVICE_TENANT } from '@penstock/run';
import { Unauthenticated } from '@penstock/errors';
import type { Grant } from './access-messages.ts';

export interface Caller {
  /** `user`: an access token (JWT); `token`: a personal token (`svc_`) of that user; `admin-key`: it administers and nothing else. */
  readonly kind: 'anonymous' | 'api-key' | 'admin-key' | 'user' | 'token';
  /** Tenants, and repositories of others where it was let in (`reachOf`). Any other run does not exist for this caller. */
  readonly readTenants: readonly string[];
  /** What it triggers belongs to this tenant; null: it may change nothing. */
  readonly writeTenant: string | null;
  /** Whose runs it may cancel, where these are more than those of `writeTenant`. */
  readonly changeTenants?: readonly string[] | undefined;
  /** What others let its user do; what it may read of it stands in `readTenants` too. */
  readonly grants?: readonly Grant[] | undefined;
  /** It may do what is for administrators; of a `user` that stands in its profile, and a `token` never may. */
  readonly administers?: true | undefined;
  /** Of `user` and `token`. */
  readonly user?: CallerUser | undefined;
  /** Of `token`: what it may be used for; everything else is FORBIDDEN. */
  readonly scopes?: readonly TokenScope[] | undefined;
  readonly tokenId?: string | undefined;
  /** Of `token`: when it ends, in milliseconds since 1970; absent where it has no end. */
  readonly endsAt?: number | undefined;
  /** Of `user`: when its access token was issued, in milliseconds since 1970. */
  readonly issuedAt?: number | undefined;
}

export interface CallerUser {
  readonly id: string;
  readonly email: string;
  readonly tier: string;
  readonly isAdmin: boolean;
  /** Of the login that the access token comes from; absent for a personal token. */
  readonly sessionId?: string | undefined;
}

export const TOKEN_SCOPES = ['read', 'trigger', 'publish', 'secrets'] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** The tenant, and so the key, of a user's own runs. */
export function tenantOfUser(userId: string): string {
  return `user/${userId}`;
}

/** Undefined: it is no user's. */
export function userOfTenant(tenant: string): string | undefined {
  const prefix = tenantOfUser('');
  return tenant.startsWith(prefix) && tenant.length > prefix.length ? tenant.slice(prefix.length) : undefined;
}

/** Null: not a token of this kind, or not a valid one. `digest` stands for the token's SHA-256, to know it again by. */
export type Authenticator = (token: string, digest: string) => Caller | null | Promise<Caller | null>;

export interface CallersOptions {
  readonly apiKey?: string | undefined;
  /** `SERVICE_ADMIN_KEY` */
  readonly adminKey?: string | undefined;
  /** In development mode. */
  readonly apiKeyAdministers?: boolean | undefined;
  readonly publicRead: boolean;
  readonly authenticators?: readonly Authenticator[] | undefined;
  /** What others let a user do; absent: nobody is asked. */
  readonly grantsOf?: ((userId: string) => readonly Grant[] | Promise<readonly Grant[]>) | undefined;
}

const API_KEY_CALLER: Caller = { kind: 'api-key', readTenants: [SERVICE_TENANT], writeTenant: SERVICE_TENANT };
const ADMIN_KEY_CALLER: Caller = { kind: 'admin-key', readTenants: [], writeTenant: null, administers: true };
/** No token of ours is longer; a longer one is not worth a digest. */
const TOKEN_LENGTH_MAX = 8 * 1024;
const DIGEST_ENCODING = 'base64';

export class Callers {
  readonly #authenticators: readonly Authenticator[];
  readonly #anonymous: Caller;
  readonly #grantsOf: CallersOptions['grantsOf'];
  /** Log streams need a token where an API key is configured (rule 4 of the specification's authentication). */
  readonly streamsNeedToken: boolean;

  constructor(options: CallersOptions) {
    const { apiKey, adminKey, apiKeyAdministers = false } = options;
    const ofApiKey: Caller = apiKeyAdministers ? { ...API_KEY_CALLER, administers: true } : API_KEY_CALLER;
    const own = [
      ...(apiKey === undefined ? [] : [keyAuthenticator(apiKey, ofApiKey)]),
      ...(adminKey === undefined ? [] : [keyAuthenticator(adminKey, ADMIN_KEY_CALLER)]),
    ];
    this.#authenticators = [...own, ...(options.authenticators ?? [])];
    this.#anonymous = { kind: 'anonymous', readTenants: options.publicRead ? [SERVICE_TENANT] : [], writeTenant: null };
    this.#grantsOf = options.grantsOf;
    this.streamsNeedToken = options.apiKey !== undefined;
  }

  /**
   * The caller of a request with this `Authorization` header (or, on the log route, this `token` parameter). A token
   * that is presented and not valid is refused (`Unauthenticated`), even where none is needed. A header of another
   * scheme than Bearer presents no token. Throws `Unavailable` where nobody can say whether a token still counts.
   */
  async resolve(authorization: string | undefined, tokenParameter?: string | undefined): Promise<Caller> {
    const token = bearerTokenOf(authorization) ?? tokenParameter;
    if (token === undefined) return this.#anonymous;
    if (token !== '' && token.length <= TOKEN_LENGTH_MAX) {
      const digest = digestOf(token);
      for (const authenticate of this.#authenticators) {
        const answer = authenticate(token, digest);
        const caller = answer instanceof Promise ? await answer : answer;
        if (caller !== null) return await this.#withGrants(caller);
      }
    }
    throw new Unauthenticated();
  }

  async #withGrants(caller: Caller): Promise<Caller> {
    if (caller.user === undefined || this.#grantsOf === undefined) return caller;
    const answer = this.#grantsOf(caller.user.id);
    const grants = answer instanceof Promise ? await answer : answer;
    return grants.length === 0
      ? caller
      : { ...caller, grants, readTenants: [...caller.readTenants, ...grants.map(reachOf)] };
  }
}

/** Compares digests, so that neither the key's length nor a common prefix shows in the time taken. */
function keyAuthenticator(key: string, caller: Caller): Authenticator {
  const expected = Buffer.from(digestOf(key), DIGEST_ENCODING);
  return (_token, digest) => (timingSafeEqual(Buffer.from(digest, DIGEST_ENCODING), expected) ? caller : null);
}

/**
 * A user sees its own runs, and those of `service` while reading is public; an admin sees `service` always and may cancel
 * there. What a personal token may do of this, its scopes say.
 */
export function callerOfUser(
  user: CallerUser,
  options: { readonly publicRead: boolean },
): Pick<Caller, 'readTenants' | 'writeTenant' | 'changeTenants' | 'user'> {
  const own = tenantOfUser(user.id);
  return {
    readTenants: options.publicRead || user.isAdmin ? [own, SERVICE_TENANT] : [own],
    writeTenant: own,
    changeTenants: user.isAdmin ? [own, SERVICE_TENANT] : [own],
    user,
  };
}

/** The token of an `Authorization` header; undefined where it presents none. */
export function bearerTokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const match = /^bearer(?:[ \t]+(.*))?$/iu.exec(authorization);
  return match === null ? undefined : (match[1] ?? '').trim();
}

/** A string rather than a buffer: it is made three times as fast, and is the key of a map. */
function digestOf(text: string): string {
  return hash('sha256', text, DIGEST_ENCODING);
}

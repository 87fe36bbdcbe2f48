/**
 * Sessions and their tokens: what a login gives out, what keeps it going, what ends it.
 *
 *  SESSION-1 A refresh token is 256 random bits and kept as a hash; without its session, which is looked up each time, it is worth nothing.
 *  SESSION-2 A refresh token is rotated once, which an insert decides: of two requests at a time one gets the successor. Its use
 *     after that is theft by somebody, and so is the other of the two: the session ends, with all that came of it.
 *  SESSION-3 What ends a session tells the gateways first and deletes then: an access token that a refresh gave out meanwhile
 *     carries the session's id and is dead with it.
 */
import { Unauthenticated } from '@penstock/errors';
import { revocationKeys, signAccessToken } from '@penstock/identity';
import { newId, type Collection, type DocumentStore } from '@penstock/store';
import { refreshTokensSpec, sessionsSpec, type SessionRow, type UserRow } from './collections.ts';
import type { OneTimeClaims } from './one-time-claims.ts';
import type { Revocations } from './revocations.ts';
import { hashOf, randomText } from './secrets.ts';
import { isId, type Users } from './users.ts';

export type SessionKind = 'web' | 'device';

export interface Login {
  readonly sessionId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

export interface Refreshed {
  readonly accessToken: string;
  readonly user: UserRow;
  /** Where rotation was asked for. */
  readonly refreshToken: string | undefined;
}

export interface SessionsOptions {
  readonly users: Users;
  readonly claims: OneTimeClaims;
  readonly revocations: Revocations;
  readonly jwtSecret: string;
  readonly now: () => number;
  /** Called when a refresh token is used after it was rotated. */
  readonly onReuse: (session: { readonly id: string; readonly userId: string }) => void;
}

const DAY_MS = 24 * 3_600_000;
const REFRESH_LIFETIME_MS = 30 * DAY_MS;
/** How many one user may have; beyond it the oldest end. Nobody has so many devices, and a script that logs in for ever must not fill the store. */
const SESSIONS_MAX = 100;
const REFRESH_PREFIX = 'rt_';
const TOKEN_LENGTH_MAX = 200;

export class Sessions {
  readonly #sessions: Collection<typeof sessionsSpec>;
  readonly #tokens: Collection<typeof refreshTokensSpec>;
  readonly #options: SessionsOptions;

  constructor(store: DocumentStore, options: SessionsOptions) {
    this.#sessions = store.collection(sessionsSpec);
    this.#tokens = store.collection(refreshTokensSpec);
    this.#options = options;
  }

  async begin(user: UserRow, kind: SessionKind): Promise<Login> {
    const now = this.#options.now();
    const session: SessionRow = {
      id: newId(now),
      userId: user.id,
      kind,
      createdAt: now,
      expiresAt: now + REFRESH_LIFETIME_MS,
    };
    const refreshToken = `${REFRESH_PREFIX}${randomText()}`;
    await this.#endOldest(user.id);
    // The token first: a session without one would be somebody's for 30 days who cannot use it.
    await this.#keepToken(refreshToken, session);
    await this.#sessions.insert(session);
    return { sessionId: session.id, refreshToken, accessToken: await this.#accessToken(user, session.id) };
  }

  /** Throws `Unauthenticated` for whatever is not a refresh token of a living session. */
  async refresh(refreshToken: string, rotate: boolean): Promise<Refreshed> {
    const session = await this.#sessionOf(refreshToken);
    if ((await this.#options.claims.get(rotationId(refreshToken))) !== null) throw await this.#reused(session);
    const user = await this.#options.users.get(session.userId);
    if (user === null || !(await this.#options.users.isAdmitted(user))) throw refusedToken();
    return {
      user,
      refreshToken: rotate ? await this.#rotate(refreshToken, session) : undefined,
      accessToken: await this.#accessToken(user, session.id),
    };
  }

  /** All sessions of the user whose refresh token this is; answers the user's id. Throws as `refresh` does. */
  async endAll(refreshToken: string): Promise<string> {
    const { userId } = await this.#sessionOf(refreshToken);
    await this.#options.revocations.revoke(revocationKeys.user(userId), this.#options.now());
    for (;;) {
      const sessions = await this.#sessions.list({ where: { userId }, limit: SESSIONS_MAX });
      for (const session of sessions) await this.end(session);
      if (sessions.length < SESSIONS_MAX) return userId;
    }
  }

  async end(session: { readonly id: string }): Promise<void> {
    await this.#options.revocations.revoke(revocationKeys.session(session.id), this.#options.now());
    await this.#sessions.delete(session.id);
  }

  /** All of a user whom nothing lets in any more (`Suspensions`); answers how many. The hashes of their refresh tokens go when they are over. */
  async forget(userId: string): Promise<number> {
    for (let forgotten = 0; ;) {
      const gone = await this.#sessions.deleteWhere({ where: { userId }, limit: SESSIONS_MAX });
      forgotten += gone;
      if (gone < SESSIONS_MAX) return forgotten;
    }
  }

  /** Null: ended, over, or never one. */
  async living(sessionId: string): Promise<SessionRow | null> {
    const session = isId(sessionId) ? await this.#sessions.get(sessionId) : null;
    return session !== null && session.expiresAt > this.#options.now() ? session : null;
  }

  async #sessionOf(refreshToken: string): Promise<SessionRow> {
    if (!refreshToken.startsWith(REFRESH_PREFIX) || refreshToken.length > TOKEN_LENGTH_MAX) throw refusedToken();
    const token = await this.#tokens.get(hashOf(refreshToken));
    const session = token === null ? null : await this.living(token.sessionId);
    if (session === null) throw refusedToken();
    return session;
  }

  /** SESSION-2: The successor is kept before the claim is taken: a crash between both leaves a token that works, and one that nobody knows. */
  async #rotate(refreshToken: string, session: SessionRow): Promise<string> {
    const successor = `${REFRESH_PREFIX}${randomText()}`;
    await this.#keepToken(successor, session);
    const claim = { at: this.#options.now(), expiresAt: session.expiresAt };
    if (!(await this.#options.claims.take(rotationId(refreshToken), claim))) throw await this.#reused(session);
    return successor;
  }

  /** Ends the session; answers what the one who brought its spent token is told. */
  async #reused(session: SessionRow): Promise<Unauthenticated> {
    await this.end(session);
    this.#options.onReuse(session);
    return refusedToken();
  }

  async #keepToken(token: string, { id: sessionId, userId, expiresAt }: SessionRow): Promise<void> {
    await this.#tokens.insert({ id: hashOf(token), sessionId, userId, createdAt: this.#options.now(), expiresAt });
  }

  async #endOldest(userId: string): Promise<void> {
    const sessions = await this.#sessions.list({ where: { userId }, limit: SESSIONS_MAX });
    if (sessions.length < SESSIONS_MAX) return;
    const [oldest] = sessions;
    if (oldest !== undefined) await this.end(oldest);
  }

  async #accessToken(user: UserRow, sid: string): Promise<string> {
    const { id: sub, email, tier } = user;
    return await signAccessToken(this.#options.jwtSecret, {
      sub,
      sid,
      email,
      tier,
      admin: this.#options.users.isAdmin(user),
      at: this.#options.now(),
    });
  }
}

function rotationId(refreshToken: string): string {
  return `rotated.${hashOf(refreshToken)}`;
}

function refusedToken(): Unauthenticated {
  return new Unauthenticated('The refresh token is not valid, or no longer: log in again.');
}

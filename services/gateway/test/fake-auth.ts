/** Auth, as far as a gateway can tell: it answers on the real broker, signs real tokens and writes real revocations. */
import { randomUUID } from 'node:crypto';
import { buckets, putExpiring, type Bus, type BusSubscription } from '@penstock/bus';
import { NotFound, Unauthenticated } from '@penstock/errors';
import {
  newPersonalToken,
  personalTokenHash,
  REVOCATION_TTL_MS,
  revocationKeys,
  signAccessToken,
  type AuthCalls,
  type AuthVerb,
  type CallerUser,
  type Grant,
  type TokenScope,
} from '@penstock/identity';
import { answerCalls } from '@penstock/service';

export const JWT_SECRET = 'a secret for tests of thirty-two bytes or more';

export interface TestUser extends CallerUser {
  readonly sessionId: string;
  /** An access token of that session. */
  readonly token: string;
}

interface KeptToken {
  readonly id: string;
  readonly user: CallerUser;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  lastUsedAt: string | null;
  /** Milliseconds since 1970. */
  expiresAt?: number;
}

type Handlers = {
  readonly [V in AuthVerb]?: (
    request: AuthCalls[V]['request'],
  ) => AuthCalls[V]['answer'] | Promise<AuthCalls[V]['answer']>;
};

export class FakeAuth {
  /** The verb of every call, in order, but for what others let users do: each caller is asked about that. */
  readonly asked: AuthVerb[] = [];
  readonly sessions = new Set<string>();
  readonly tokens = new Map<string, KeptToken>();
  /** What others let users do, by their ids. */
  readonly grants = new Map<string, readonly Grant[]>();
  /** Ids of users whom an administrator has shut out. */
  readonly suspended = new Set<string>();
  /** Before it is said what others let a user do. */
  heldUp: (userId: string) => Promise<void> = async () => {};
  readonly #bus: Bus;
  readonly #users = new Map<string, CallerUser>();
  #answering: BusSubscription | undefined;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async open(): Promise<void> {
    const handlers: Handlers = {
      names: ({ id }) => ({ names: [id, `${id}@example.com`], by: id }),
      user: ({ id }) => {
        const user = this.#users.get(id);
        if (user === undefined) throw new NotFound('There is no such user.');
        return { ...user, name: id, login: id, avatarUrl: '', createdAt: new Date(0).toISOString() };
      },
      'access.of': async ({ userId }) => {
        await this.heldUp(userId);
        return { grants: this.grants.get(userId) ?? [] };
      },
      session: ({ sid }) => ({ live: this.sessions.has(sid), userId: null }),
      token: ({ hash }) => this.#identityOf(hash),
      'token.used': ({ used }) => {
        for (const { tokenId, at } of used)
          for (const token of this.tokens.values())
            if (token.id === tokenId) token.lastUsedAt = new Date(at).toISOString();
        return null;
      },
      'user.is-suspended': ({ userId }) => ({ suspended: this.suspended.has(userId) }),
      'tokens.list': ({ userId }) => ({
        tokens: [...this.tokens.values()]
          .filter(({ user }) => user.id === userId)
          .map(({ id, name, scopes, lastUsedAt }) => ({
            id,
            name,
            scopes,
            createdAt: new Date(0).toISOString(),
            lastUsedAt,
            expiresAt: null,
          })),
      }),
      'tokens.create': ({ userId, name, scopes }) => {
        const { token, id } = this.#keep(userId, name, scopes as TokenScope[]);
        return {
          id,
          name,
          scopes: scopes as TokenScope[],
          createdAt: new Date(0).toISOString(),
          expiresAt: null,
          token,
        };
      },
      'tokens.revoke': async ({ userId, id }) => {
        const kept = [...this.tokens].find(([, token]) => token.id === id && token.user.id === userId);
        if (kept === undefined) throw new NotFound('You have no token with this id.');
        await this.#revoke(revocationKeys.token(id));
        this.tokens.delete(kept[0]);
        return { revoked: true };
      },
      'tokens.revoke-all': async ({ userId }) => {
        const kept = [...this.tokens].filter(([, { user }]) => user.id === userId);
        for (const [hash, { id }] of kept) {
          await this.#revoke(revocationKeys.token(id));
          this.tokens.delete(hash);
        }
        return { revoked: kept.map(([, { id }]) => id) };
      },
    };
    const counted = Object.entries(handlers).map(
      ([verb, handle]) =>
        [
          verb,
          (request: never) => {
            if (verb !== 'access.of') this.asked.push(verb as AuthVerb);
            return (handle as (request: never) => unknown)(request);
          },
        ] as const,
    );
    this.#answering = answerCalls(this.#bus, 'auth', Object.fromEntries(counted));
    await this.#bus.flush();
  }

  /** Nobody answers any more. */
  async leave(): Promise<void> {
    this.#answering?.stop();
    await this.#bus.flush();
  }

  async login(id: string, fields: { readonly tier?: string; readonly isAdmin?: boolean } = {}): Promise<TestUser> {
    const user = { id, email: `${id}@example.com`, tier: fields.tier ?? 'free', isAdmin: fields.isAdmin ?? false };
    const sessionId = randomUUID();
    this.#users.set(id, user);
    this.sessions.add(sessionId);
    const token = await signAccessToken(JWT_SECRET, {
      sub: id,
      sid: sessionId,
      email: user.email,
      tier: user.tier,
      admin: user.isAdmin,
      at: Date.now(),
    });
    return { ...user, sessionId, token };
  }

  /** As auth does it: kept first, then told. */
  async letIn(userId: string, ...grants: readonly Grant[]): Promise<void> {
    this.grants.set(userId, grants);
    await this.#revoke(revocationKeys.access(userId));
  }

  /** Resolves when the broker has it, as a logout answers. */
  async logout({ id, sessionId }: TestUser): Promise<void> {
    this.sessions.delete(sessionId);
    await this.#revoke(revocationKeys.session(sessionId));
    await this.#revoke(revocationKeys.user(id));
  }

  /** The text of a new token of someone who has logged in. */
  personalToken(userId: string, ...scopes: TokenScope[]): string {
    return this.#keep(userId, scopes.join(), scopes).token;
  }

  async revokeToken(token: string): Promise<void> {
    const kept = this.tokens.get(personalTokenHash(token));
    this.tokens.delete(personalTokenHash(token));
    await this.#revoke(revocationKeys.token(kept?.id ?? ''));
  }

  #keep(userId: string, name: string, scopes: readonly TokenScope[]): { readonly token: string; readonly id: string } {
    const user = this.#users.get(userId);
    if (user === undefined) throw new Error(`${userId} has never logged in`);
    const token = newPersonalToken();
    const id = randomUUID();
    this.tokens.set(personalTokenHash(token), { id, user, name, scopes, lastUsedAt: null });
    return { token, id };
  }

  #identityOf(hash: string): AuthCalls['token']['answer'] {
    const kept = this.tokens.get(hash);
    if (kept === undefined) throw new Unauthenticated();
    const { user, scopes, id: tokenId, expiresAt } = kept;
    return { user, scopes, tokenId, ...(expiresAt === undefined ? {} : { expiresAt }) };
  }

  async #revoke(key: string): Promise<void> {
    await putExpiring(this.#bus, buckets.revocations, key, { before: Date.now() }, REVOCATION_TTL_MS);
  }
}

/** What auth answers to other services over the bus (`AuthCalls` in @penstock/identity). */
import type { Bus, BusSubscription } from '@penstock/bus';
import { NotFound, Unauthenticated } from '@penstock/errors';
import type { AuthCalls, AuthVerb } from '@penstock/identity';
import { answerCalls } from '@penstock/service';
import type { AuditLog } from '@penstock/store';
import { accessCalls } from './access-calls.ts';
import type { AccessGrants } from '../model/access-grants.ts';
import type { Fleet } from '../flows/fleet.ts';
import { masterKeyCalls, type MasterKeyCallsOptions } from './master-key-calls.ts';
import { peopleCalls } from './people-calls.ts';
import type { PersonalTokens } from '../model/personal-tokens.ts';
import type { RunnerTokens } from '../model/runner-tokens.ts';
import type { StageSecrets } from '../model/stage-secrets.ts';
import { asServiceError } from './refusals.ts';
import { runnerTokenCalls } from './runner-token-calls.ts';
import { secretCalls } from './secret-calls.ts';
import type { Sessions } from '../model/sessions.ts';
import type { Suspensions } from '../model/suspensions.ts';
import type { Users } from '../model/users.ts';

export interface CallsOptions {
  readonly bus: Bus;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly tokens: PersonalTokens;
  readonly stageSecrets: StageSecrets;
  readonly fleet: Fleet;
  readonly runnerTokens: RunnerTokens;
  readonly access: AccessGrants;
  readonly suspensions: Suspensions;
  readonly rotation: Omit<MasterKeyCallsOptions, 'audit' | 'now'>;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = { readonly [V in AuthVerb]: (request: AuthCalls[V]['request']) => Promise<AuthCalls[V]['answer']> };

const HASH = /^[0-9a-f]{64}$/u;

export function answerAuthCalls({
  bus,
  users,
  sessions,
  tokens,
  stageSecrets,
  fleet,
  runnerTokens,
  access,
  suspensions,
  rotation,
  audit,
  now,
}: CallsOptions): BusSubscription {
  const handlers: Handlers = {
    ...secretCalls({ secrets: stageSecrets, audit, now }),
    ...accessCalls({ access, audit, now }),
    ...peopleCalls({ fleet, users, sessions, tokens, stageSecrets, access, suspensions, audit, now }),
    ...masterKeyCalls({ ...rotation, audit, now }),
    ...runnerTokenCalls({ fleet, runnerTokens, users, audit, now }),
    async user({ id }) {
      const user = await users.get(id);
      if (user === null) throw new NotFound('There is no such user.');
      return users.shown(user);
    },
    async names({ id }) {
      const user = await users.get(id);
      if (user === null) throw new NotFound('There is no such user.');
      return { names: users.accessNamesOf(user), by: users.namesOf(user).by };
    },
    async session({ sid }) {
      const session = await sessions.living(sid);
      if (session === null) return { live: false, userId: null };
      return { live: !(await users.isSuspended(session.userId)), userId: session.userId };
    },
    async token({ hash }) {
      const found = typeof hash === 'string' && HASH.test(hash) ? await tokens.byHash(hash) : null;
      const user = found === null ? null : await users.get(found.userId);
      if (found === null || user === null || !(await users.isAdmitted(user))) throw new Unauthenticated();
      return {
        user: { id: user.id, email: user.email, tier: user.tier, isAdmin: users.isAdmin(user) },
        scopes: found.scopes,
        tokenId: found.id,
        ...(found.expiresAt === null ? {} : { expiresAt: found.expiresAt }),
      };
    },
    async 'token.used'({ used }) {
      await tokens.used(used);
      return null;
    },
    async 'tokens.list'({ userId }) {
      return { tokens: await tokens.list(userId) };
    },
    async 'tokens.create'({ userId, name, scopes, expires, ip }) {
      if ((await users.get(userId)) === null) throw new NotFound('There is no such user.');
      const created = await tokens.create(userId, name, scopes, expires);
      audit.record({
        at: now(),
        actor: `user/${userId}`,
        action: 'token.create',
        target: `token/${created.id}`,
        outcome: 'ok',
        ip,
      });
      return created;
    },
    async 'tokens.revoke'({ userId, id, ip }) {
      await tokens.revoke(userId, id);
      audit.record({
        at: now(),
        actor: `user/${userId}`,
        action: 'token.revoke',
        target: `token/${id}`,
        outcome: 'ok',
        ip,
      });
      return { revoked: true };
    },
    async 'tokens.revoke-all'({ userId, ip }) {
      const revoked = await tokens.revokeAll(userId);
      audit.record({
        at: now(),
        actor: `user/${userId}`,
        action: 'token.revoke_all',
        target: `user/${userId}`,
        outcome: 'ok',
        ip,
      });
      return { revoked };
    },
  };
  const guarded = Object.entries(handlers).map(
    ([verb, handle]) =>
      [
        verb,
        async (request: never) => {
          try {
            return await handle(request);
          } catch (error) {
            throw asServiceError(error);
          }
        },
      ] as const,
  );
  return answerCalls(bus, 'auth', Object.fromEntries(guarded));
}

/** What auth answers to administrators about people (`PeopleCalls` in @penstock/identity). */
import { userOfTenant, type PeopleCalls } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import { forgetUser, type ForgettingOptions } from '../flows/forget-user.ts';
import type { Suspensions } from '../model/suspensions.ts';

export interface PeopleCallsOptions extends ForgettingOptions {
  readonly suspensions: Suspensions;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof PeopleCalls]: (request: PeopleCalls[V]['request']) => Promise<PeopleCalls[V]['answer']>;
};

export function peopleCalls(options: PeopleCallsOptions): Handlers {
  const { fleet, users, suspensions, audit, now } = options;
  const record = (action: string, actor: string, userId: string, ip: string | undefined): void =>
    audit.record({ at: now(), actor, action, target: `user/${userId}`, outcome: 'ok', ip });
  return {
    async 'user.suspend'({ login, actor, ip }) {
      const suspended = await suspensions.suspend(login, actor);
      fleet.lookSoon();
      record('user.suspend', actor, suspended.id, ip);
      return suspended;
    },
    async 'user.unsuspend'({ login, actor, ip }) {
      const { id, lifted } = await suspensions.lift(login);
      if (lifted) record('user.unsuspend', actor, id, ip);
      return { lifted };
    },
    async 'user.delete'({ login, actor, ip }) {
      const { id, login: shownLogin } = await suspensions.shutForGood(login, actor);
      fleet.lookSoon();
      record('user.delete', actor, id, ip);
      return { id, login: shownLogin };
    },
    async 'user.forget'({ userId, actor, ip }) {
      const forgotten = await forgetUser(options, userId);
      record('user.deleted', actor, userId, ip);
      return forgotten;
    },
    async 'tenant.forget'({ tenant }) {
      const userId = userOfTenant(tenant);
      const tokens = userId === undefined ? [] : await options.tokens.revokeAll(userId);
      const runnerTokens = await fleet.revokeAll(tenant);
      return { secrets: await options.stageSecrets.deleteAll(tenant), tokens, runnerTokens };
    },
    async 'user.is-suspended'({ userId }) {
      return { suspended: await users.isSuspended(userId) };
    },
    async 'users.suspended'() {
      return { users: await suspensions.list() };
    },
  };
}

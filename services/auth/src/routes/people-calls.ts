/** What auth answers to administrators about people (`PeopleCalls` in @penstock/identity). */
import type { PeopleCalls } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import type { Suspensions } from '../model/suspensions.ts';
import type { Users } from '../model/users.ts';

export interface PeopleCallsOptions {
  readonly users: Users;
  readonly suspensions: Suspensions;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof PeopleCalls]: (request: PeopleCalls[V]['request']) => Promise<PeopleCalls[V]['answer']>;
};

export function peopleCalls({ users, suspensions, audit, now }: PeopleCallsOptions): Handlers {
  const record = (action: string, actor: string, userId: string, ip: string | undefined): void =>
    audit.record({ at: now(), actor, action, target: `user/${userId}`, outcome: 'ok', ip });
  return {
    async 'user.suspend'({ login, actor, ip }) {
      const suspended = await suspensions.suspend(login, actor);
      record('user.suspend', actor, suspended.id, ip);
      return suspended;
    },
    async 'user.unsuspend'({ login, actor, ip }) {
      const { id, lifted } = await suspensions.lift(login);
      if (lifted) record('user.unsuspend', actor, id, ip);
      return { lifted };
    },
    async 'user.is-suspended'({ userId }) {
      return { suspended: await users.isSuspended(userId) };
    },
    async 'users.suspended'() {
      return { users: await suspensions.list() };
    },
  };
}

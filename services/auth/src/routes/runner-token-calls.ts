/** What auth answers to the gateway about the tokens of a fleet's runners (`RunnerTokenCalls` in @penstock/identity). */
import { BadUserInput } from '@penstock/errors';
import { userOfTenant, type RunnerTokenCalls } from '@penstock/identity';
import { SERVICE_TENANT } from '@penstock/run';
import type { AuditLog } from '@penstock/store';
import type { Fleet } from '../flows/fleet.ts';
import type { RunnerTokens } from '../model/runner-tokens.ts';
import type { Users } from '../model/users.ts';

export interface RunnerTokenCallsOptions {
  readonly fleet: Fleet;
  readonly runnerTokens: RunnerTokens;
  readonly users: Pick<Users, 'get'>;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof RunnerTokenCalls]: (
    request: RunnerTokenCalls[V]['request'],
  ) => Promise<RunnerTokenCalls[V]['answer']>;
};

export function runnerTokenCalls({ fleet, runnerTokens, users, audit, now }: RunnerTokenCallsOptions): Handlers {
  const record = (
    action: string,
    id: string,
    { actor, ip }: { readonly actor: string; readonly ip?: string | undefined },
  ): void => audit.record({ at: now(), actor, action, target: `runner-token/${id}`, outcome: 'ok', ip });
  return {
    async 'runner-tokens.create'({ actor, ip, ...wish }) {
      // Before one is made that nobody could use.
      void fleet.door;
      if (wish.tenant !== undefined) await checkTenant(wish.tenant, users);
      const created = await runnerTokens.create(wish);
      record('runner_token.create', created.id, { actor, ip });
      return created;
    },
    async 'runner-tokens.list'({ tenant }) {
      return { tokens: await fleet.list(tenant) };
    },
    async 'runner-tokens.revoke'({ id, tenant, actor, ip }) {
      await fleet.revoke(id, tenant);
      record('runner_token.revoke', id, { actor, ip });
      return { revoked: true };
    },
  };
}

/** Whose runs there could be. */
async function checkTenant(tenant: string, users: Pick<Users, 'get'>): Promise<void> {
  const userId = userOfTenant(tenant);
  if (userId === undefined ? tenant === SERVICE_TENANT : (await users.get(userId)) !== null) return;
  throw new BadUserInput(`There is no such tenant: 'user/' with a user's id, or '${SERVICE_TENANT}'.`, {
    field: 'tenant',
  });
}

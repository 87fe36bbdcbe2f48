/** What auth answers to the gateway about the tokens of a fleet's runners (`RunnerTokenCalls` in @penstock/identity). */
import type { RunnerTokenCalls } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import type { Fleet } from '../flows/fleet.ts';
import type { RunnerTokens } from '../model/runner-tokens.ts';

export interface RunnerTokenCallsOptions {
  readonly fleet: Fleet;
  readonly runnerTokens: RunnerTokens;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof RunnerTokenCalls]: (
    request: RunnerTokenCalls[V]['request'],
  ) => Promise<RunnerTokenCalls[V]['answer']>;
};

export function runnerTokenCalls({ fleet, runnerTokens, audit, now }: RunnerTokenCallsOptions): Handlers {
  const record = (
    action: string,
    id: string,
    { actor, ip }: { readonly actor: string; readonly ip?: string | undefined },
  ): void => audit.record({ at: now(), actor, action, target: `runner-token/${id}`, outcome: 'ok', ip });
  return {
    async 'runner-tokens.create'({ actor, ip, ...wish }) {
      // Before one is made that nobody could use.
      void fleet.door;
      const created = await runnerTokens.create(wish);
      record('runner_token.create', created.id, { actor, ip });
      return created;
    },
    async 'runner-tokens.list'() {
      return { tokens: await fleet.list() };
    },
    async 'runner-tokens.revoke'({ id, actor, ip }) {
      await fleet.revoke(id);
      record('runner_token.revoke', id, { actor, ip });
      return { revoked: true };
    },
  };
}

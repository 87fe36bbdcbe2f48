/** What auth answers to the gateway about who else may work on a repository (`AccessCalls` in @penstock/identity). */
import type { AccessCalls, OwnedRepository } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import type { AccessGrants } from '../model/access-grants.ts';

export interface AccessCallsOptions {
  readonly access: AccessGrants;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof AccessCalls]: (request: AccessCalls[V]['request']) => Promise<AccessCalls[V]['answer']>;
};

export function accessCalls({ access, audit, now }: AccessCallsOptions): Handlers {
  const record = (
    action: string,
    { provider, repository, actor, ip }: OwnedRepository & { readonly actor: string; readonly ip?: string | undefined },
    what: string,
  ): void => audit.record({ at: now(), actor, action, target: `${provider} ${repository}${what}`, outcome: 'ok', ip });
  return {
    async 'access.of'({ userId }) {
      return { grants: await access.of(userId) };
    },
    async 'access.list'(of) {
      return { access: await access.list(of) };
    },
    async 'access.grant'(request) {
      const { tenant, provider, repository, login, role, actor } = request;
      const entry = await access.grant({ tenant, provider, repository }, { login, role, by: actor });
      record('access.grant', request, ` ${entry.role} to ${entry.login}`);
      return entry;
    },
    async 'access.revoke'(request) {
      const revoked = await access.revoke(request, request.login);
      if (revoked) record('access.revoke', request, ` of ${request.login.trim().toLowerCase()}`);
      return { revoked };
    },
    async 'access.leave'(request) {
      const revoked = await access.leave(request, request.userId);
      if (revoked) record('access.leave', request, '');
      return { revoked };
    },
    async 'access.end'(request) {
      const ended = await access.end(request);
      if (ended > 0) record('access.end', request, '');
      return { ended };
    },
  };
}

/** What auth answers to the gateway about the secrets of stages (`SecretCalls` in @penstock/identity). */
import type { SecretCalls, SecretScope } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import type { StageSecrets } from '../model/stage-secrets.ts';

export interface SecretCallsOptions {
  readonly secrets: StageSecrets;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof SecretCalls]: (request: SecretCalls[V]['request']) => Promise<SecretCalls[V]['answer']>;
};

export function secretCalls({ secrets, audit, now }: SecretCallsOptions): Handlers {
  const record = (action: string, { actor, ip, name, ...scope }: SecretCalls['secrets.delete']['request']): void =>
    audit.record({ at: now(), actor, action, target: `secret/${name} of ${scopeText(scope)}`, outcome: 'ok', ip });
  return {
    async 'secrets.set'({ actor, ip, ...secret }) {
      const info = await secrets.set(secret);
      record('secret.set', { actor, ip, ...scopeOf(secret), name: secret.name });
      return info;
    },
    async 'secrets.delete'({ name, actor, ip, ...scope }) {
      const deleted = await secrets.delete(scope, name);
      if (deleted) record('secret.delete', { actor, ip, ...scope, name });
      return { deleted };
    },
    async 'secrets.list'({ tenant, repository }) {
      return { secrets: await secrets.list({ tenant, repository }) };
    },
  };
}

function scopeOf({ tenant, repository, pipeline }: SecretScope): SecretScope {
  return { tenant, repository, pipeline };
}

function scopeText({ tenant, repository, pipeline }: SecretScope): string {
  return [
    tenant,
    ...(repository === undefined ? [] : [`repository ${repository}`]),
    ...(pipeline === undefined ? [] : [`pipeline ${pipeline}`]),
  ].join(', ');
}

/** Puts the schema together from its parts, one for each subject. */
import { Forbidden, Unauthenticated } from '@penstock/errors';
import { actorOf } from '@penstock/identity';
import type { RefusalAudit } from '../audit/refusal-audit.ts';
import { accessModule } from './access.ts';
import { adminModule } from './admin.ts';
import { adminBackupModule } from './admin-backup.ts';
import { adminDeadLettersModule } from './admin-dead-letters.ts';
import { adminKeysModule } from './admin-keys.ts';
import { adminPeopleModule } from './admin-people.ts';
import { adminPurgeModule } from './admin-purge.ts';
import { cachesModule } from './caches.ts';
import { approvalsModule } from './approvals.ts';
import type { GraphqlContext } from './arguments.ts';
import { deletionModule } from './deletion.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { historyModule } from './history.ts';
import { hooksModule } from './hooks.ts';
import { identityModule } from './identity.ts';
import { registryModule } from './registry.ts';
import { rerunsModule } from './reruns.ts';
import { makeResolvers, type GraphqlOptions } from './resolvers.ts';
import { runnerTokensModule } from './runner-tokens.ts';
import { schedulesModule } from './schedules.ts';
import { secretsModule } from './secrets.ts';
import { SCHEMA } from './schema.ts';
import { testReportsModule } from './test-reports.ts';
import { verdictsModule } from './verdicts.ts';
import { waitsModule } from './waits.ts';
import { webhooksModule } from './webhooks.ts';

export function graphqlModules(options: GraphqlOptions): GraphqlModule {
  const modules: readonly GraphqlModule[] = [
    { sdl: SCHEMA, resolvers: makeResolvers(options) },
    accessModule({ bus: options.identity.bus, revocations: options.identity.revocations }),
    adminModule({ bus: options.identity.bus, audit: options.audit, now: options.now }),
    adminBackupModule(options),
    adminDeadLettersModule({ bus: options.identity.bus, audit: options.audit, now: options.now }),
    adminKeysModule({ bus: options.identity.bus }),
    adminPeopleModule({ bus: options.identity.bus, revocations: options.identity.revocations }),
    adminPurgeModule({ ...options, bus: options.identity.bus, revocations: options.identity.revocations }),
    approvalsModule(options),
    historyModule(options),
    hooksModule({ bus: options.identity.bus, audit: options.audit, now: options.now }),
    identityModule(options.identity),
    registryModule({ bus: options.identity.bus, audit: options.audit, now: options.now }),
    cachesModule({ bus: options.identity.bus }),
    runnerTokensModule({ bus: options.identity.bus }),
    schedulesModule(options),
    rerunsModule(options),
    deletionModule(options),
    secretsModule({ bus: options.identity.bus }),
    testReportsModule(options),
    verdictsModule(options),
    waitsModule(options),
    webhooksModule({ bus: options.identity.bus, audit: options.audit, now: options.now }),
  ];
  const resolvers: Record<string, Record<string, unknown>> = {};
  for (const module of modules) {
    for (const [type, fields] of Object.entries(module.resolvers)) {
      resolvers[type] = {
        ...resolvers[type],
        ...(type === 'Query' || type === 'Mutation' ? audited(fields, options.refusalAudit) : fields),
      };
    }
  }
  return { sdl: modules.map(({ sdl }) => sdl).join('\n'), resolvers };
}

type Resolve = (source: unknown, args: unknown, context: GraphqlContext, info: unknown) => unknown;

/** Records what is refused to a caller who presented a credential. It stands in one place for all operations, so that none can forget it. */
function audited(fields: Readonly<Record<string, unknown>>, refusalAudit: RefusalAudit): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, resolve]) => [field, auditedField(field, resolve as Resolve, refusalAudit)]),
  );
}

function auditedField(field: string, resolve: Resolve, refusalAudit: RefusalAudit): Resolve {
  return (source, args, context, info) => {
    const refused = (error: unknown): never => {
      if ((error instanceof Forbidden || error instanceof Unauthenticated) && context.caller.kind !== 'anonymous') {
        refusalAudit.note({
          actor: actorOf(context.caller),
          action: field,
          outcome: error.code,
          address: context.address,
        });
      }
      throw error;
    };
    try {
      const answer = resolve(source, args, context, info);
      return answer instanceof Promise ? answer.catch(refused) : answer;
    } catch (error) {
      return refused(error);
    }
  };
}

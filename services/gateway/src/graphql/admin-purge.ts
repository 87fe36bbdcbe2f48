/** Everything of a tenant deleted, for operators. */
import { actorOf, requireAdministrator } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import { purgeTenant, type PurgeOptions, type PurgeReceipt } from '../runs/purge-tenant.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AdminPurgeOptions extends Omit<PurgeOptions, 'budgetMs'> {
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  "What one call has deleted of a tenant (additional)."
  type AdminPurge {
    tenant: String!
    "Nothing is left of it. Else the same is to be asked again, which deletes what is left and counts that alone."
    isDone: Boolean!
    "What the rest waits for; null: nothing is left."
    waitsFor: String
    "With their logs, kept files and test reports."
    runs: Int!
    "They are deleted once their stages have ended."
    cancelledRuns: Int!
    "Connected ones."
    repositories: Int!
    "What others were let do in them."
    grantsGiven: Int!
    "Lines of them."
    schedules: Int!
    "Outgoing webhooks, with what waits for them."
    hooks: Int!
    secrets: Int!
    "Personal tokens and runner tokens."
    tokens: Int!
    caches: Int!
    "Webhook deliveries. That they came is kept for 7 days, so that none is taken for a new one."
    deliveries: Int!
    "Private ones. Public ones stay: others use them."
    extensions: Int!
    "Public keys for extensions: what they have signed counts as unsigned. Those of 'service' stay."
    extensionKeys: Int!
  }

  extend type Mutation {
    """
    Deletes everything of a tenant for good: 'user/' with a user's id, or 'service'. CONFLICT where runs of it go on, unless 'cancel' has them
    cancelled first. A call works for 10 s or so, and counts what it has deleted. The user may still log in, and is deleted by 'deleteUser'. What stays: the audit
    log, what months have counted, public extensions. For administrators (additional).
    """
    adminPurge(tenant: String, cancel: Boolean): AdminPurge!
  }
`;

interface Args {
  readonly tenant?: Maybe<string>;
  readonly cancel?: Maybe<boolean>;
}

export function adminPurgeModule({ audit, now, ...options }: AdminPurgeOptions): GraphqlModule {
  const adminPurge = async (_: unknown, args: Args, context: GraphqlContext): Promise<PurgeReceipt> => {
    const { caller, address: ip, work } = context;
    requireAdministrator(caller);
    const tenant = given(args.tenant, 'tenant');
    const actor = actorOf(caller);
    // Also where it fails: some may be deleted all the same.
    work.removesRuns = true;
    return await purgeTenant(options, {
      tenant,
      cancel: args.cancel === true,
      actor,
      ip,
      begins: () => audit.record({ at: now(), actor, action: 'admin.purge', target: tenant, outcome: 'ok', ip }),
    });
  };
  return { sdl: SDL, resolvers: { Mutation: { adminPurge } } };
}

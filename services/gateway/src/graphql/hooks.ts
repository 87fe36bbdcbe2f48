/** Outgoing webhooks: made, listed and deleted, and what became of what they were sent; all of it is asked of the webhook ingest. */
import type { Bus, HookDeliveryView, HookView, IngestCalls } from '@penstock/bus';
import { Forbidden } from '@penstock/errors';
import { actorOf, requireWriter, type Caller } from '@penstock/identity';
import { callService } from '@penstock/service';
import type { AuditLog } from '@penstock/store';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface HooksModuleOptions {
  readonly bus: Bus;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  "An address that is told of the caller's runs (additional)."
  type Hook {
    id: String!
    url: String!
    "Some of run.started, run.completed, stage.completed and approval.requested"
    events: [String!]!
    "<provider>/<path>; null: of all runs."
    repository: String
    createdAt: String!
    "False: nothing was taken for three days, or it answered 410. It is on again when it takes what is redelivered."
    active: Boolean!
    "Since when every attempt has failed; null: the last one did not."
    failingSince: String
    "Why the last attempt failed."
    lastError: String
  }

  type HookSecret {
    id: String!
    url: String!
    events: [String!]!
    repository: String
    createdAt: String!
    "Shown this once: what deliveries are signed with, as Standard Webhooks has it (whsec_…)."
    secret: String!
  }

  "What a webhook was or is to be sent: one event of a run; kept for seven days, and of a webhook the newest 1,000 (additional)."
  type HookDelivery {
    "Also its webhook-id."
    id: String!
    event: String!
    runId: String!
    "Of the run after the event."
    version: Int!
    "WAITING, DELIVERED, or DEAD: it was not taken for three days, or the webhook was switched off."
    status: String!
    attempts: Int!
    createdAt: String!
    attemptedAt: String
    "Null where it is due at once, or has ended."
    nextAttemptAt: String
    "Of the last attempt; null where there was no answer."
    responseStatus: Int
    responseMs: Int
    error: String
  }

  extend type Query {
    "Those of the caller's tenant, the oldest first (additional)."
    hooks: [Hook!]!
    "By the id of a webhook, those of the newest runs first: 20 where 'limit' is absent, at most 100 (additional)."
    hookDeliveries(id: String, limit: Int): [HookDelivery!]!
  }

  extend type Mutation {
    """
    Tells an address of what happens to the runs of the caller's tenant, or to those of 'repository' (<provider>/<path>) alone: 'events' are some of
    run.started, run.completed, stage.completed and approval.requested. CONFLICT: the tenant has 20 (additional).
    """
    createHook(url: String, events: [String!], repository: String): HookSecret!
    "What waits for it goes with it. True where there was one (additional)."
    deleteHook(id: String): Boolean!
    "Sends a delivery again, by its id, with the same webhook-id (additional)."
    redeliverHook(id: String): HookDelivery!
  }
`;

const DELIVERIES_LIMIT = { default: 20, max: 100 } as const;

export function hooksModule({ bus, audit, now }: HooksModuleOptions): GraphqlModule {
  const ask = <V extends keyof IngestCalls>(
    verb: V,
    request: IngestCalls[V]['request'],
  ): Promise<IngestCalls[V]['answer']> =>
    callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(bus, 'webhook-ingest', verb, request);
  const noted = ({ caller, address }: GraphqlContext, action: string, target: string): void =>
    audit.record({ at: now(), actor: actorOf(caller), action, target, outcome: 'ok', ip: address });
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        hooks: async (_: unknown, _args: unknown, { caller }: GraphqlContext): Promise<readonly HookView[]> =>
          (await ask('hooks.list', { tenant: tenantOf(caller) })).hooks,
        hookDeliveries: async (
          _: unknown,
          args: { readonly id?: Maybe<string>; readonly limit?: Maybe<number> },
          { caller }: GraphqlContext,
        ): Promise<readonly HookDeliveryView[]> => {
          const request = { tenant: tenantOf(caller), id: given(args.id, 'id') };
          return (await ask('hooks.deliveries', { ...request, limit: limitOf(args.limit, DELIVERIES_LIMIT) }))
            .deliveries;
        },
      },
      Mutation: {
        createHook: async (
          _: unknown,
          args: {
            readonly url?: Maybe<string>;
            readonly events?: Maybe<readonly string[]>;
            readonly repository?: Maybe<string>;
          },
          context: GraphqlContext,
        ) => {
          const hook = await ask('hooks.create', {
            tenant: tenantOf(context.caller),
            url: given(args.url, 'url'),
            events: (args.events ?? []).map((event) => event.toWellFormed()),
            repository: args.repository?.toWellFormed(),
          });
          noted(context, 'hook.create', hook.id);
          return hook;
        },
        deleteHook: async (_: unknown, args: { readonly id?: Maybe<string> }, context: GraphqlContext) => {
          const id = given(args.id, 'id');
          const { deleted } = await ask('hooks.delete', { tenant: tenantOf(context.caller), id });
          if (deleted) noted(context, 'hook.delete', id);
          return deleted;
        },
        redeliverHook: async (
          _: unknown,
          args: { readonly id?: Maybe<string> },
          context: GraphqlContext,
        ): Promise<HookDeliveryView> => {
          const id = given(args.id, 'id');
          const delivery = await ask('hooks.redeliver', { tenant: tenantOf(context.caller), id });
          noted(context, 'hook.redeliver', id);
          return delivery;
        },
      },
    },
  };
}

/** A webhook goes on telling when the token that made it is forgotten. */
function tenantOf(caller: Caller): string {
  if (caller.kind === 'token')
    throw new Forbidden('Webhooks are not for personal tokens: log in, or use the API key of the server.');
  return requireWriter(caller);
}

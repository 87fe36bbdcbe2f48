/** What was given up, of all tenants, for operators: outgoing webhooks that nobody took for three days. */
import type { Bus, DeadHookDelivery, HookDeliveryView, IngestCalls } from '@penstock/bus';
import { actorOf, requireAdministrator } from '@penstock/identity';
import { callService } from '@penstock/service';
import type { AuditLog } from '@penstock/store';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AdminDeadLettersModuleOptions {
  readonly bus: Bus;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const LIMIT = { default: 50, max: 1_000 } as const;

const SDL = /* GraphQL */ `
  "A delivery of an outgoing webhook that was given up (additional)."
  type AdminDeadLetter {
    id: String!
    hook: String!
    tenant: String!
    url: String!
    event: String!
    runId: String!
    attempts: Int!
    createdAt: String!
    "When it was given up."
    endedAt: String!
    "Of the last attempt."
    error: String
  }

  extend type Query {
    "Deliveries of outgoing webhooks that were given up in the last 7 days, of all tenants, the latest first. For administrators (additional)."
    adminDeadLetters(limit: Int): [AdminDeadLetter!]!
  }

  extend type Mutation {
    "Sends such a delivery again, by its id. True when it waits to be sent; else an error. For administrators (additional)."
    adminRedrive(id: String): Boolean!
  }
`;

export function adminDeadLettersModule({ bus, audit, now }: AdminDeadLettersModuleOptions): GraphqlModule {
  const ask = <V extends keyof IngestCalls>(
    verb: V,
    request: IngestCalls[V]['request'],
  ): Promise<IngestCalls[V]['answer']> =>
    callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(bus, 'webhook-ingest', verb, request);
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        adminDeadLetters: async (
          _: unknown,
          args: { readonly limit?: Maybe<number> },
          { caller }: GraphqlContext,
        ): Promise<readonly DeadHookDelivery[]> => {
          requireAdministrator(caller);
          return (await ask('hooks.dead', { limit: limitOf(args.limit, LIMIT) })).deliveries;
        },
      },
      Mutation: {
        adminRedrive: async (
          _: unknown,
          args: { readonly id?: Maybe<string> },
          { caller, address }: GraphqlContext,
        ): Promise<boolean> => {
          requireAdministrator(caller);
          const id = given(args.id, 'id');
          const { status }: HookDeliveryView = await ask('hooks.redrive', { id });
          audit.record({
            at: now(),
            actor: actorOf(caller),
            action: 'admin.redrive',
            target: id,
            outcome: 'ok',
            ip: address,
          });
          return status === 'WAITING';
        },
      },
    },
  };
}

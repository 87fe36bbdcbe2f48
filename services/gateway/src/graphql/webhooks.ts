/** Deliveries of git hosts, why what came of them, and connected repositories; all of it is asked of the webhook ingest. */
import type { Bus, IngestCalls, IngestVerb } from '@penstock/bus';
import { actorOf, callAuth, requireChanger, requireReader, requireUser, tenantOfUser } from '@penstock/identity';
import { callService } from '@penstock/service';
import type { AuditLog } from '@penstock/store';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface WebhooksModuleOptions {
  readonly bus: Bus;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  "One step on the way to what came of a delivery (additional)."
  type DecisionStep {
    "verified, event, address, repository, proved, head, message, fetched, file, read, matched, run or schedule"
    step: String!
    "False: this step decided that nothing runs; of 'verified', that the delivery was not signed; of 'schedule', that nothing starts it by itself."
    passed: Boolean!
    detail: String!
  }

  type DeliveryError {
    code: String!
    message: String!
  }

  "What a git host has delivered, kept for seven days (additional)."
  type WebhookDelivery {
    id: String!
    "As the host gave it; made by this server where it gave none."
    deliveryId: String!
    provider: String!
    event: String!
    repository: String!
    ref: String!
    commit: String!
    "ISO 8601 in UTC."
    receivedAt: String!
    "server: with the server's secret; connection: with a connected repository's; none"
    verified: String!
    "Run, Skipped, Failed, Ignored, or Pending while it is not decided"
    outcome: String!
    "Null where no run came of it."
    runId: String
    pipelineName: String
    "The file's path in the repository, server_template or none."
    source: String!
    error: DeliveryError
    trace: [DecisionStep!]!
    "The id of the delivery that this one repeats."
    replayOf: String
  }

  "A ref that only who may write to the repository can make (additional)."
  type RepositoryProof {
    ref: String!
  }

  "A repository whose deliveries belong to the user (additional)."
  type ConnectedRepository {
    id: String!
    provider: String!
    repository: String!
    "What the git host is to deliver to."
    webhookUrl: String!
    createdAt: String!
    "Push this ref, then call verifyRepository."
    proof: RepositoryProof!
    "False: its deliveries are Ignored until it is proved."
    proved: Boolean!
    "The name of the secret that it is read with; null: it is read with what the server has."
    cloneSecret: String
  }

  type ConnectRepositoryResult {
    id: String!
    provider: String!
    repository: String!
    webhookUrl: String!
    createdAt: String!
    "Push this ref, then call verifyRepository."
    proof: RepositoryProof!
    "True at once in development mode only."
    proved: Boolean!
    "The name of the secret that it is read with; null: it is read with what the server has."
    cloneSecret: String
    "Shown this once: the webhook's secret (provider A) or token (provider B)."
    secret: String!
  }

  extend type Query {
    "The newest first: 20 where 'limit' is absent, at most 100 (additional)."
    webhookDeliveries(limit: Int): [WebhookDelivery!]!
    "By its id, the host's, or its run's; null where there is none that this caller may see (additional)."
    webhookDelivery(id: String): WebhookDelivery
    "Those of the user, the newest first (additional)."
    repositories: [ConnectedRepository!]!
  }

  extend type Mutation {
    "Deliveries signed with the secret in the answer belong to the user; 'provider' is git_host_a or git_host_b; 'cloneSecret' names the secret that the repository is read with in place of what the server has (additional)."
    connectRepository(provider: String, repository: String, cloneSecret: String): ConnectRepositoryResult!
    "The name of the secret that a connected repository is read with, from its next fetch on; without 'name' it is read with what the server has (additional)."
    setCloneSecret(id: String, name: String): ConnectedRepository!
    "Looks for the ref of its proof at the git host; from then on its deliveries are run (additional)."
    verifyRepository(id: String): ConnectedRepository!
    "Its secret is worth nothing from now on (additional)."
    disconnectRepository(id: String): Boolean!
    "Decides a delivery anew: with 'dryRun' to see what would come of it now, else as a run of its own (additional)."
    replayWebhookDelivery(id: String, dryRun: Boolean): WebhookDelivery!
  }
`;

const DELIVERIES_LIMIT = { default: 20, max: 100 } as const;
/** A dry run may have to clone. */
const REPLAY_MS_MAX = 20_000;
/** A git host is asked. */
const VERIFY_MS_MAX = 20_000;

export function webhooksModule({ bus, audit, now }: WebhooksModuleOptions): GraphqlModule {
  const ask = <V extends IngestVerb>(
    verb: V,
    request: IngestCalls[V]['request'],
    deadlineMs?: number,
  ): Promise<IngestCalls[V]['answer']> =>
    callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(bus, 'webhook-ingest', verb, request, deadlineMs);
  const noted = (context: GraphqlContext, action: string, target: string): void =>
    audit.record({ at: now(), actor: actorOf(context.caller), action, target, outcome: 'ok', ip: context.address });

  return {
    sdl: SDL,
    resolvers: {
      Query: {
        webhookDeliveries: async (_: unknown, args: { limit?: Maybe<number> }, { caller }: GraphqlContext) =>
          (await ask('deliveries', { tenants: requireReader(caller), limit: limitOf(args.limit, DELIVERIES_LIMIT) }))
            .deliveries,
        webhookDelivery: async (_: unknown, args: { id?: Maybe<string> }, { caller }: GraphqlContext) =>
          (await ask('delivery', { tenants: requireReader(caller), id: given(args.id, 'id') })).delivery,
        repositories: async (_: unknown, _args: unknown, { caller }: GraphqlContext) =>
          (await ask('connections', { userId: requireUser(caller).id })).repositories,
      },
      Mutation: {
        connectRepository: async (
          _: unknown,
          args: { provider?: Maybe<string>; repository?: Maybe<string>; cloneSecret?: Maybe<string> },
          context: GraphqlContext,
        ) => {
          const { id: userId } = requireUser(context.caller);
          const connected = await ask('connect', {
            userId,
            provider: given(args.provider, 'provider'),
            repository: given(args.repository, 'repository'),
            ...(typeof args.cloneSecret === 'string' ? { cloneSecret: args.cloneSecret } : {}),
          });
          noted(context, 'repository.connect', `${connected.provider} ${connected.repository}`);
          return connected;
        },
        setCloneSecret: async (
          _: unknown,
          args: { id?: Maybe<string>; name?: Maybe<string> },
          context: GraphqlContext,
        ) => {
          const { id: userId } = requireUser(context.caller);
          const name = args.name ?? null;
          const changed = await ask('clone-secret', { userId, id: given(args.id, 'id'), name });
          noted(context, 'repository.clone_secret', `${changed.provider} ${changed.repository}, ${name ?? 'none'}`);
          return changed;
        },
        verifyRepository: async (_: unknown, args: { id?: Maybe<string> }, context: GraphqlContext) => {
          const { id: userId } = requireUser(context.caller);
          const verified = await ask('verify', { userId, id: given(args.id, 'id') }, VERIFY_MS_MAX);
          noted(context, 'repository.verify', `${verified.provider} ${verified.repository}`);
          return verified;
        },
        disconnectRepository: async (_: unknown, args: { id?: Maybe<string> }, context: GraphqlContext) => {
          const { id: userId } = requireUser(context.caller);
          const connected = (await ask('connections', { userId })).repositories.find(({ id }) => id === args.id);
          // First: whoever was let in is not to find the door open where the owner can close it no more.
          if (connected !== undefined)
            await callAuth(bus, 'access.end', {
              tenant: tenantOfUser(userId),
              provider: connected.provider,
              repository: connected.repository,
              actor: actorOf(context.caller),
              ip: context.address,
            });
          const { disconnected } = await ask('disconnect', { userId, id: given(args.id, 'id') });
          noted(context, 'repository.disconnect', args.id ?? '');
          return disconnected;
        },
        replayWebhookDelivery: async (
          _: unknown,
          args: { id?: Maybe<string>; dryRun?: Maybe<boolean> },
          context: GraphqlContext,
        ) => {
          const request = {
            tenants: requireChanger(context.caller),
            id: given(args.id, 'id'),
            dryRun: args.dryRun ?? false,
          };
          const delivery = await ask('replay', request, REPLAY_MS_MAX);
          if (!request.dryRun) noted(context, 'delivery.replay', delivery.replayOf ?? request.id);
          return delivery;
        },
      },
    },
  };
}

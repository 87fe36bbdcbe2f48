/** The ingest, put together: for `serve`, beside the gateway on one server, and for a process of its own. */
import { hostOfClone, openDeliveryLog, subjects, type Bus } from '@penstock/bus';
import { runLimitsOf, type RunLimits, type ServerMode, type Tiers } from '@penstock/config';
import { NotFound } from '@penstock/errors';
import { callAuth } from '@penstock/identity';
import { ServerTemplate } from '@penstock/pipeline';
import { Owners, RunReads } from '@penstock/run-client';
import { answerCalls } from '@penstock/service';
import { RunsRepository, type DocumentStore } from '@penstock/store';
import type { FastifyInstance } from 'fastify';
import { ingestCalls } from './calls.ts';
import { cloneCredentials } from './model/clone-credentials.ts';
import { ConnectionsRepository, type NamedRepository } from './model/connections-repository.ts';
import type { Decision } from './model/decision.ts';
import { hookCalls } from './hooks/calls.ts';
import { HooksRepository } from './hooks/hooks-repository.ts';
import { Outbox } from './hooks/outbox.ts';
import { post } from './hooks/post.ts';
import { machineNames, publicNames } from './hooks/resolve.ts';
import { HookSender } from './hooks/sender.ts';
import { DeliveriesRepository } from './model/deliveries-repository.ts';
import { ingestKeys, type Delivery } from './model/delivery.ts';
import { Intake } from './intake/intake.ts';
import { PushRate } from './intake/push-rate.ts';
import { PayloadReader } from './intake/payload-reader.ts';
import { OutcomeWaits } from './intake/outcome-waits.ts';
import type { ClonePolicy, CommitSource, ForkPolicy, RefSource } from './model/ports.ts';
import type { HomeHosts } from './model/proof.ts';
import { Processing } from './processing/processing.ts';
import type { ProviderName } from './providers/provider.ts';
import { RefusedDeliveries } from './intake/refused-deliveries.ts';
import { StatusOutbox } from './statuses/outbox.ts';
import type { RunCreated, RunId } from '@penstock/run';
import type { StatusHost, StatusTarget } from './statuses/host-api.ts';
import type { UidRange } from './intake/local-sender.ts';
import { addWebhookRoutes } from './intake/webhook-routes.ts';
import type { Log } from '@penstock/telemetry/log';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';

export interface WebhookIngestOptions {
  readonly bus: Bus;
  /** Opened with `ingestCollections` and `runCollections` among its collections. */
  readonly store: DocumentStore;
  readonly log: Log;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** P9: what the journal was set up with. */
  readonly partitions: number;
  readonly mirrors: CommitSource & RefSource;
  readonly mode: ServerMode;
  /** `SERVICE_GIT_ALLOWED_HOSTS`; without effect in development mode. */
  readonly allowedHosts: readonly string[];
  /** Run ids and the secrets of connected repositories are made from it: the same for all ingests, at every start. */
  readonly jwtSecret: string;
  /** `SERVICE_BASE_URL`, or where the server listens. Asked when it is needed: a port may be taken only then. */
  baseUrl(): string;
  /** `SERVICE_DASHBOARD_URL`; default the base address. */
  readonly dashboardUrl?: string | undefined;
  /** `SERVICE_WEBHOOK_SECRET`, `SERVICE_WEBHOOK_TOKEN`. */
  readonly secrets?: { readonly [P in ProviderName]?: string | undefined } | undefined;
  /** Whether unsigned deliveries are taken where their own provider has no secret; default: while no provider has one. */
  readonly unsigned?: boolean | undefined;
  /** Where the repositories of each provider are; default the public hosts. */
  readonly homes?: Partial<HomeHosts> | undefined;
  /** `SERVICE_WEBHOOK_WAIT_SECS`; default 8. */
  readonly waitSecs?: number | undefined;
  /** `readTemplate` of `SERVICE_WEBHOOK_PIPELINE`. */
  readonly template?: string | null | undefined;
  /** `SERVICE_FORK_POLICY`; default `approve`. */
  readonly forks?: ForkPolicy | undefined;
  /** `SERVICE_WEBHOOK_REPOSITORIES`; default all. */
  readonly repositories?: readonly string[] | undefined;
  readonly tiers: Tiers;
  /** `SERVICE_TENANT_TIER`; default no limits. */
  readonly tenantTier?: string | undefined;
  /** Where commit statuses go: only to hosts that a token is configured for. */
  readonly statusHosts?: { readonly [P in ProviderName]?: StatusHost | undefined } | undefined;
  /** Deliveries processed at a time, half as many of one host; default 16. */
  readonly concurrency?: number | undefined;
  /** Of one repository, not processed yet. Default 100,000, and an eighth of what the stream may hold. */
  readonly waitingMax?: { readonly deliveries: number; readonly bytes: number } | undefined;
  /** The users that stages of this machine run as: none of them has a folder of it cloned. Absent: stages have no users of their own. */
  readonly stageUids?: UidRange | undefined;
  /** Whether somebody asks for runs otherwise, on this machine; default: nobody does. */
  readonly areRunsAsked?: (() => boolean) | undefined;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}

export interface WebhookIngest {
  /** `POST /webhook`. */
  addRoutes(app: FastifyInstance): Promise<void>;
  /** Requests that wait are answered, what is under way is finished, the rest is for the next start. */
  close(): Promise<void>;
}

const WAIT_SECS = 8;
const PUBLIC_HOSTS: HomeHosts = { git_host_a: 'github.com', git_host_b: 'gitlab.com' };
/** What a repository gets whose user is gone. */
const TIER_OF_NOBODY = 'free';
/** The operator's own runs, where no tier is set for them: whatever an extension needs. */
const TIER_UNLIMITED = 'enterprise';

/** Rejects, having begun nothing, while the streams are not set up. */
export async function startWebhookIngest(options: WebhookIngestOptions): Promise<WebhookIngest> {
  const { bus, store, log, mirrors, mode } = options;
  await openDeliveryLog(bus).ensureConsumer();
  const now = options.now ?? Date.now;
  const secrets = options.secrets ?? {};
  const homes: HomeHosts = { ...PUBLIC_HOSTS, ...options.homes };
  const policy: ClonePolicy = { mode, allowedHosts: options.allowedHosts };
  const keys = ingestKeys(options.jwtSecret);
  const owners = new Owners(bus, options.partitions);
  const reads = new RunReads(owners, new RunsRepository(store, { log }));
  const deliveries = new DeliveriesRepository(store);
  const connections = new ConnectionsRepository(store, keys.connections);
  const waits = new OutcomeWaits({ bus, owners, reads, deliveries });
  const statuses = new StatusOutbox({
    bus,
    store,
    reads,
    log,
    now,
    hosts: options.statusHosts ?? {},
    targetOf: (runId, created) => targetOfTick({ policy, homes }, runId, created),
    urlOfRun: (runId) => `${options.dashboardUrl ?? options.baseUrl()}/runs/${runId}`,
  });

  const tiers = new TenantTiers(options);
  const sources = {
    bus,
    mirrors,
    clones: cloneCredentials(bus, connections.cloneSecrets),
    template: options.template == null ? null : new ServerTemplate(options.template),
    namesRepositories: options.repositories !== undefined,
    forks: options.forks ?? 'approve',
    log,
    tierOf: (delivery: Pick<Delivery, 'userId'>) => tiers.tierOf(delivery),
  };
  const rate = new PushRate();
  const processing = new Processing({
    ...sources,
    owners,
    connections,
    idKey: keys.runIds,
    deliveries,
    now,
    limitsOf: (delivery) => tiers.limitsOf(delivery),
    beginStatus: (delivery, decision) => beginStatus(statuses, { policy, homes }, delivery, decision),
    concurrency: options.concurrency,
    isIntakeBusy: () => rate.isBusy,
    areRunsAsked: options.areRunsAsked ?? (() => false),
  });
  const payloads = new PayloadReader();
  const intake = new Intake({
    bus,
    deliveries,
    waits,
    keys,
    policy,
    forks: sources.forks,
    log,
    now,
    verification: { connections, secrets, unsigned: options.unsigned ?? !Object.values(secrets).some(Boolean) },
    repositories: options.repositories,
    waitMs: (options.waitSecs ?? WAIT_SECS) * 1000,
    waitingMax: options.waitingMax,
    waiting: processing.waiting,
    stored: (place, sequence, bytes) => processing.stored(place, sequence, bytes),
    makeRoom: (before) => processing.makeRoom(before),
    processedUpTo: (from, end) => processing.processedUpTo(from, end),
    refused: new RefusedDeliveries(deliveries, log, now),
    payloads,
    rate,
  });
  const hooks = new HooksRepository(store, { keys: keys.hooks, mode });
  const outbox = new Outbox(store);
  const names = mode === 'production' ? publicNames() : machineNames();
  const sender = new HookSender({
    bus,
    hooks,
    outbox,
    log,
    now,
    meter: options.meter ?? noMeter,
    post: (url, headers, body, stopped) => post(url, headers, body, { mode, names }, stopped),
  });
  const calls = answerCalls(bus, 'webhook-ingest', {
    ...ingestCalls({
      ...sources,
      deliveries,
      connections,
      intake,
      refs: mirrors,
      policy,
      homes,
      repositories: options.repositories,
      now,
      webhookUrl: () => `${options.baseUrl()}/webhook`,
    }),
    ...hookCalls({ hooks, outbox, now, wake: (hook) => sender.wake(hook) }),
  });
  const changes = bus.subscribe<NamedRepository>(subjects.connections, (named) => connections.forget(named));
  processing.start();
  statuses.start();
  sender.start();
  return {
    addRoutes: async (app) => {
      app.addHook('preClose', () => waits.stop());
      await addWebhookRoutes(app, intake, { stageUids: options.stageUids, meter: options.meter ?? noMeter });
    },
    async close() {
      calls.stop();
      changes.stop();
      waits.stop();
      await processing.stop();
      await statuses.stop();
      await sender.stop();
      owners.close();
      await payloads.close();
    },
  };
}

/** Which limits hold for a delivery's runs. */
class TenantTiers {
  readonly #options: WebhookIngestOptions;

  constructor(options: WebhookIngestOptions) {
    this.#options = options;
  }

  async tierOf(delivery: Pick<Delivery, 'userId'>): Promise<string> {
    if (delivery.userId === undefined) return this.#options.tenantTier ?? TIER_UNLIMITED;
    return await this.#tierOfUser(delivery.userId);
  }

  async limitsOf({ userId }: Delivery): Promise<RunLimits | undefined> {
    const { tiers, tenantTier } = this.#options;
    return runLimitsOf(tiers, userId === undefined ? tenantTier : await this.#tierOfUser(userId));
  }

  async #tierOfUser(id: string): Promise<string> {
    try {
      return (await callAuth(this.#options.bus, 'user', { id })).tier;
    } catch (error) {
      if (error instanceof NotFound) return TIER_OF_NOBODY;
      throw error;
    }
  }
}

/** A push of the same commit may end otherwise: neither is to stand for the other. */
function targetOfTick(
  { policy, homes }: { readonly policy: ClonePolicy; readonly homes: HomeHosts },
  runId: RunId,
  { tenant, pipelineName, origin }: RunCreated,
): StatusTarget | undefined {
  const { kind, provider, repository, commit, ref, cloneUrl = '' } = origin;
  const isNamed = provider === 'git_host_a' || provider === 'git_host_b';
  if (kind !== 'schedule' || !isNamed || repository === undefined || commit === undefined || ref === undefined)
    return undefined;
  if (policy.mode === 'production' && hostOfClone(cloneUrl) !== homes[provider]) return undefined;
  return {
    provider,
    repository,
    commit,
    ref,
    runId,
    tenant,
    context: `penstock/${pipelineName.slice(0, 170)}/schedule`,
  };
}

/**
 * An unsigned delivery says nothing about who pushed, and a status written for it would say it with the server's voice:
 * only where everybody is trusted anyway. Nor is the API of one host told about a repository of another.
 */
async function beginStatus(
  statuses: StatusOutbox,
  { policy, homes }: { readonly policy: ClonePolicy; readonly homes: HomeHosts },
  delivery: Delivery,
  decision: Decision,
): Promise<void> {
  if (decision.kind === 'nothing' || (decision.kind === 'ended' && decision.status !== 'FAILED')) return;
  const isElsewhere = hostOfClone(delivery.cloneUrl) !== homes[delivery.provider];
  if (policy.mode === 'production' && (delivery.verified === 'none' || isElsewhere)) return;
  const { provider, repository, commit, ref, runId, tenant, pullRequest } = delivery;
  // A push of the same commit may end otherwise: neither is to stand for the other.
  const event = pullRequest === undefined ? '' : '/pull_request';
  await statuses.add({
    provider,
    repository,
    commit,
    ref,
    runId,
    tenant,
    context: `penstock/${decision.pipelineName.slice(0, 170)}${event}`,
  });
}

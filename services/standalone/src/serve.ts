/**
 * `penstock serve`: all services in one process on one machine, with an embedded broker and store (P17). They speak over
 * NATS exactly as they do apart; this file only makes their surroundings, starts them in order and stops them in order.
 */
import { arch, availableParallelism, platform } from 'node:os';
import { join } from 'node:path';
import { authCollections, startAuth, type ProviderSettings } from '@penstock/auth';
import { type Bus, connectBus, deleteBuckets, ensureStreams, RUNNER_LEASE_MS } from '@penstock/bus';
import type { ServerMode, Tiers } from '@penstock/config';
import { killLeftovers } from '@penstock/executor';
import { gatewayCollections, startGateway, storedSessions, type RunningGateway } from '@penstock/gateway';
import { openMirrors } from '@penstock/git';
import type { RateLimits } from '@penstock/http';
import { openObjectStore } from '@penstock/object-store';
import { builtInExtensions, PACKAGES_BUCKET, registryCollections, startRegistry } from '@penstock/registry';
import { startRunner, type Runner } from '@penstock/runner';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import {
  auditCollections,
  AuditRepository,
  openStore,
  runCollections,
  RunsRepository,
  type DocumentStore,
  type StoreAddress,
} from '@penstock/store';
import { createLogger, type LogLevel, type Logger } from '@penstock/telemetry';
import { ingestCollections, startWebhookIngest, type WebhookSettings } from '@penstock/webhook-ingest';
import { startEmbeddedBroker, type EmbeddedBroker } from './broker.ts';
import { makeDataFolder } from './data-folder.ts';
import { lockDataFolder } from './data-lock.ts';
import { checkListenAddress } from './listen-check.ts';
import { reachableUrl } from './reachable-url.ts';

export interface ServeOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly dataDir: string;
  readonly mode: ServerMode;
  readonly apiKey: string;
  readonly jwtSecret: string;
  /** Under which clients reach the server; default where it listens. */
  readonly baseUrl?: string | undefined;
  readonly dashboardUrl?: string | undefined;
  readonly provider: ProviderSettings;
  /** Logins or emails. */
  readonly admins: readonly string[];
  readonly allowedLogins?: readonly string[] | undefined;
  readonly defaultTier: string;
  readonly tiers: Tiers;
  readonly tenantTier?: string | undefined;
  readonly publicRead: boolean;
  readonly corsOrigins: readonly string[];
  readonly rateLimits: RateLimits;
  readonly trustProxy: readonly string[];
  readonly playground: boolean;
  readonly introspection: boolean;
  readonly webhooks: WebhookSettings;
  readonly gitCredentialsFile?: string | undefined;
  readonly gitCacheBytesMax: number;
  readonly extensionPolicy: 'any' | 'signed';
  /** `nats`, or a folder; default one in the data folder. */
  readonly objectsUrl?: string | undefined;
  readonly partitions: number;
  readonly slots?: number | undefined;
  readonly labels?: readonly string[] | undefined;
  readonly runnerLeaseMs?: number | undefined;
  readonly queueTimeoutMs?: number | undefined;
  readonly logBytesMax?: number | undefined;
  /** Running stages get so long when the server is told to stop. */
  readonly drainMs: number;
  readonly triggerWaitSecs?: number | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** A broker of one's own: comma-separated addresses. Absent: the embedded one, by this binary. */
  readonly natsUrl?: string | undefined;
  readonly natsBinary?: string | undefined;
  readonly natsSync?: 'default' | 'always' | undefined;
  readonly natsReplicas?: number | undefined;
  readonly store: StoreAddress;
}

export interface RunningServer {
  readonly url: string;
  /**
   * Stages finish (bounded) while the API goes on; then streams end with a hint, the partition is released, the broker
   * stops. `onWait` is told the stages that are waited for, where there are any.
   */
  close(onWait?: (stages: readonly RunningStage[]) => void): Promise<void>;
}

export interface RunningStage {
  readonly stage: string;
  readonly pipelineName: string;
}

/** One machine has one runner; its name is the same at each start, so that workspaces are found again. */
const RUNNER_ID = 'local';

export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { dataDir } = options;
  await checkListenAddress(options.listen);
  makeDataFolder(dataDir);
  const logFor = (service: string): Logger =>
    createLogger({ service, level: options.logLevel ?? 'info', secrets: [options.apiKey, options.jwtSecret] });
  const log = logFor('serve');
  const started: (() => Promise<unknown> | void)[] = [];
  const close = async (): Promise<void> => {
    for (const end of started.splice(0).toReversed()) {
      try {
        await end();
      } catch (error) {
        log.error({ err: error }, 'a service did not stop cleanly');
      }
    }
  };
  try {
    const lock = lockDataFolder(dataDir);
    started.push(() => lock.release());
    const leftoversFile = join(dataDir, 'leftovers');
    await killLeftovers(leftoversFile);
    const bus = await startBus(options, log, started);
    const store = await openStore(options.store, [
      ...runCollections,
      ...gatewayCollections,
      ...auditCollections,
      ...authCollections,
      ...ingestCollections,
      ...registryCollections,
    ]);
    started.push(() => store.close());
    const { gateway, runner } = await startServices(options, { bus, store, logFor, leftoversFile }, started);
    return {
      url: gateway.url,
      async close(onWait) {
        const stages = runner.runningStages();
        if (stages.length > 0) onWait?.(stages);
        // While everything else still answers: whoever watches the stages sees how they end.
        await runner
          .drain(options.drainMs)
          .catch((error: unknown) => log.error({ err: error }, 'the runner did not drain'));
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startBus(options: ServeOptions, log: Logger, started: (() => Promise<unknown> | void)[]): Promise<Bus> {
  let broker: EmbeddedBroker | undefined;
  if (options.natsUrl === undefined) {
    broker = await startEmbeddedBroker({
      dataDir: options.dataDir,
      binary: options.natsBinary ?? 'nats-server',
      log,
      sync: options.natsSync,
      onExit: (end) => log.error({ ...end }, 'the broker has ended; it is being started again'),
    });
    started.push(() => broker?.stop());
  }
  const bus = await connectBus(
    broker === undefined
      ? { servers: options.natsUrl ?? '', name: 'serve', log }
      : { servers: broker.url, user: broker.user, pass: broker.password, name: 'serve', log },
  );
  started.push(() => bus.close());
  const limits =
    broker === undefined ? {} : { journalBytesMax: broker.journalBytesMax, logsBytesMax: broker.logsBytesMax };
  // The data folder's lock proves that everybody in these buckets is dead (P17). A broker that is shared proves nothing.
  if (broker !== undefined) await deleteBuckets(bus);
  await ensureStreams(bus, { partitions: options.partitions, replicas: options.natsReplicas, ...limits });
  return bus;
}

async function startServices(
  options: ServeOptions,
  {
    bus,
    store,
    logFor,
    leftoversFile,
  }: {
    readonly bus: Bus;
    readonly store: DocumentStore;
    logFor(service: string): Logger;
    readonly leftoversFile: string;
  },
  started: (() => Promise<unknown> | void)[],
): Promise<{ readonly gateway: RunningGateway; readonly runner: Runner }> {
  const { partitions, dataDir, runnerLeaseMs, queueTimeoutMs, logBytesMax, mode } = options;
  const runs = new RunsRepository(store);
  const audit = new AuditRepository(store, { log: logFor('audit') });
  started.push(() => audit.close());
  const scheduler: Scheduler = await startScheduler({
    bus,
    ledger: runs,
    log: logFor('scheduler'),
    partitions,
    runnerLeaseMs,
    queueTimeoutMs,
    logBytesMax,
    leasesProvenDead: options.natsUrl === undefined,
  });
  started.push(() => scheduler.close());
  // The intake reads a file where the runner checks out the whole: one fetch serves both.
  const mirrors = openMirrors({
    folder: join(dataDir, 'mirrors'),
    bytesMax: options.gitCacheBytesMax,
    credentialsFile: options.gitCredentialsFile,
    log: logFor('git'),
    policy: { mode, allowedHosts: options.webhooks.allowedHosts },
  });
  started.push(() => mirrors.close());
  const runner: Runner = await startRunner({
    bus,
    runnerId: RUNNER_ID,
    mirrors,
    slots: options.slots ?? Math.max(2, availableParallelism()),
    labels: [...new Set([platform(), arch(), ...(options.labels ?? [])])].toSorted(),
    dataDir,
    leaseMs: runnerLeaseMs ?? RUNNER_LEASE_MS,
    leftoversFile,
    log: logFor('runner'),
  });
  started.push(() => runner.close());
  await scheduler.settled();
  // A free port is known only once it is listened on.
  let listening = '';
  const baseUrl = (): string => options.baseUrl ?? listening;
  const auth = startAuth({
    bus,
    store,
    audit,
    mode,
    baseUrl,
    jwtSecret: options.jwtSecret,
    dashboardUrl: options.dashboardUrl,
    provider: options.provider,
    admins: options.admins,
    allowedLogins: options.allowedLogins,
    defaultTier: options.defaultTier,
    log: logFor('auth'),
  });
  started.push(() => auth.close());
  const registry = await startRegistry({
    bus,
    store,
    tiers: options.tiers,
    policy: options.extensionPolicy,
    log: logFor('registry'),
    objects: await openObjectStore(options.objectsUrl ?? join(dataDir, 'objects'), { bus, bucket: PACKAGES_BUCKET }),
  });
  started.push(() => registry.close());
  await registry.publishBuiltIns(await builtInExtensions());
  const ingest = await startWebhookIngest({
    ...options.webhooks,
    bus,
    store,
    mirrors,
    partitions,
    baseUrl,
    jwtSecret: options.jwtSecret,
    tiers: options.tiers,
    log: logFor('webhook-ingest'),
  });
  started.push(() => ingest.close());
  const gateway = await startGateway({
    listen: options.listen,
    bus,
    runs,
    store,
    partitions,
    audit,
    mode,
    apiKey: options.apiKey,
    jwtSecret: options.jwtSecret,
    isSessionActive: storedSessions(store),
    publicRead: options.publicRead,
    corsOrigins: options.corsOrigins,
    rateLimits: options.rateLimits,
    trustProxy: options.trustProxy,
    playground: options.playground,
    introspection: options.introspection,
    tiers: options.tiers,
    tenantTier: options.tenantTier,
    logLevel: options.logLevel,
    triggerWaitSecs: options.triggerWaitSecs,
    log: logFor('gateway'),
    routes: [
      (app) => auth.addRoutes(app),
      (app) => ingest.addRoutes(app),
      (app, around) => registry.addRoutes(app, around),
    ],
  });
  listening = reachableUrl(gateway.url);
  started.push(() => gateway.close());
  return { gateway, runner };
}

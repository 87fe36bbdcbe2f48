/** What strangers speak to: gateway, auth, registry and webhook intake on one server, with a bus and a store of its own. */
import type { MessagePort } from 'node:worker_threads';
import { authCollections, startAuth, type ProviderSettings } from '@penstock/auth';
import { connectBus, linkThreads } from '@penstock/bus';
import { loadTiers, type ServerMode } from '@penstock/config';
import { gatewayCollections, startGateway, storedSessions } from '@penstock/gateway';
import type { RateLimits } from '@penstock/http';
import { openObjectStore } from '@penstock/object-store';
import { builtInExtensions, PACKAGES_BUCKET, registryCollections, startRegistry } from '@penstock/registry';
import {
  auditCollections,
  AuditRepository,
  openStore,
  runCollections,
  KEPT_VIEW_CHARACTERS,
  RunsRepository,
  type StoreAddress,
} from '@penstock/store';
import { createLogger, type LogLevel, type Logger } from '@penstock/telemetry';
import { Metrics, type MetricsSnapshot } from '@penstock/telemetry/metrics';
import { ingestCollections, startWebhookIngest, type WebhookSettings } from '@penstock/webhook-ingest';
import type { BusAddress } from '../bus-address.ts';
import { BackupDesk } from '../backup/backup-desk.ts';
import type { BackupSettings } from '../backup/make-backup.ts';
import { reachableUrl } from '../reachable-url.ts';
import { closeInTurn, type Closing } from '../closing.ts';
import { allFigures } from './all-figures.ts';
import { addFleetSocket } from './fleet-socket.ts';
import { lookAtTenantWrites } from './tenant-writes.ts';
import type { mirrorsByCalls } from './mirror-calls.ts';
import { tellOfFile } from './read-files.ts';
import { secretsOf } from './secrets-of.ts';

/** Somebody who asks for runs asks again soon, mostly. */
const ASKED_MS = 1_000;

/** Data only: it crosses from one thread to another. */
export interface ApiOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly mode: ServerMode;
  readonly apiKey: string;
  readonly adminKey?: string | undefined;
  readonly jwtSecret: string;
  /** What secrets are kept under; without one none is taken. */
  readonly masterKeys?: readonly string[] | undefined;
  /** What schedulers sign by; made by `serve`. */
  readonly slipKey?: string | undefined;
  /** Under which clients reach the server; default where it listens. */
  readonly baseUrl?: string | undefined;
  readonly dashboardUrl?: string | undefined;
  readonly provider: ProviderSettings;
  /** Logins or emails. */
  readonly admins: readonly string[];
  readonly allowedLogins?: readonly string[] | undefined;
  readonly defaultTier: string;
  readonly tiersFile?: string | undefined;
  readonly tenantTier?: string | undefined;
  readonly publicRead: boolean;
  readonly corsOrigins: readonly string[];
  readonly rateLimits: RateLimits;
  readonly trustProxy: readonly string[];
  readonly playground: boolean;
  readonly introspection: boolean;
  readonly streamsPerUser?: number | undefined;
  readonly webhooks: WebhookSettings;
  /** The users that stages run as, where that is not the server's own. */
  readonly stageUids?: { readonly first: number; readonly last: number } | undefined;
  readonly extensionPolicy: 'any' | 'signed';
  /** How long runs, lines of logs and the audit log are kept. */
  readonly retention: {
    readonly runMs: number;
    readonly runs: number;
    readonly logMs: number;
    readonly auditMs: number;
  };
  /** `nats`, or a folder. */
  readonly objectsUrl: string;
  readonly partitions: number;
  readonly triggerWaitSecs?: number | undefined;
  readonly logLevel?: LogLevel | undefined;
  readonly store: StoreAddress;
  /** Absent: the broker is not this server's own. */
  readonly fleet?:
    | {
        /** Where the broker listens for runners of the fleet, on loopback. */
        readonly port: number;
        /** Of `LOGS`. */
        readonly logsBytesMax: number;
        /** Of an attempt, as schedulers tell runners. */
        readonly logBytesMax: number;
      }
    | undefined;
  /** What a backup copies; absent: the whole is not this server's own. */
  readonly backup?: BackupSettings | undefined;
}

/** What it asks of the other thread. */
export interface EngineForApi {
  readonly mirrors: ReturnType<typeof mirrorsByCalls>;
  figures(): Promise<MetricsSnapshot>;
  /** Used where there is a port for runners of the fleet. */
  readonly door: NonNullable<Parameters<typeof startAuth>[0]['fleetDoor']>;
  /** Between the two buses; what it has read of files goes by it too. */
  readonly line: MessagePort;
}

export interface RunningApi {
  readonly url: string;
  readonly port: number;
  /** `/ready` says from now on that the server stops; everything else goes on. */
  announceStop(): void;
  /** Of the runner of the other thread. */
  answerRunner(runner: string, verb: string, body: unknown): Promise<unknown>;
  close(): Promise<void>;
}

/** Rejects with the cause, having closed what had been started. */
export async function startApi(options: ApiOptions, busAddress: BusAddress, engine: EngineForApi): Promise<RunningApi> {
  const logFor = (service: string): Logger =>
    createLogger({ service, level: options.logLevel ?? 'info', secrets: secretsOf(options) });
  const log = logFor('serve');
  const started: Closing[] = [];
  try {
    return await startParts(options, busAddress, engine, logFor, started);
  } catch (error) {
    await closeInTurn(started, log);
    throw error;
  }
}

async function startParts(
  options: ApiOptions,
  busAddress: BusAddress,
  { mirrors, figures, door, line }: EngineForApi,
  logFor: (service: string) => Logger,
  started: Closing[],
): Promise<RunningApi> {
  const { mode, jwtSecret, partitions } = options;
  const tiers = loadTiers(options.tiersFile);
  const meter = new Metrics({ process: false });
  const bus = await connectBus({ ...busAddress, name: 'serve-api', log: logFor('serve') });
  started.push(() => bus.close());
  linkThreads(bus, line);
  const store = await openStore(options.store, [
    ...runCollections,
    ...gatewayCollections,
    ...auditCollections,
    ...authCollections,
    ...ingestCollections,
    ...registryCollections,
  ]);
  started.push(() => store.close());
  const audit = new AuditRepository(store, { log: logFor('audit') });
  started.push(() => audit.close());
  // A free port is known only once it is listened on.
  let listening = '';
  const baseUrl = (): string => options.baseUrl ?? listening;
  const { fleet } = options;
  const fleetDoor = fleet === undefined ? undefined : door;
  const auth = startAuth({ ...options, bus, store, audit, baseUrl, fleetDoor, log: logFor('auth') });
  started.push(() => auth.close());
  const tenantWrites =
    fleet === undefined ? undefined : lookAtTenantWrites({ bus, partitions, log: logFor('fleet'), ...fleet });
  started.push(() => tenantWrites?.stop());
  const registry = await startRegistry({
    bus,
    store,
    tiers,
    policy: options.extensionPolicy,
    partitions,
    logRetentionMs: options.retention.logMs,
    log: logFor('registry'),
    objects: await openObjectStore(options.objectsUrl, { bus, bucket: PACKAGES_BUCKET }),
  });
  started.push(() => registry.close());
  await registry.publishBuiltIns(await builtInExtensions());
  let runAskedAt = -Infinity;
  const ingest = await startWebhookIngest({
    ...options.webhooks,
    bus,
    store,
    mirrors,
    partitions,
    baseUrl,
    jwtSecret,
    tiers,
    stageUids: options.stageUids,
    meter,
    areRunsAsked: () => performance.now() - runAskedAt < ASKED_MS,
    log: logFor('webhook-ingest'),
  });
  started.push(() => ingest.close());
  const { backup } = options;
  const backups = backup === undefined ? undefined : new BackupDesk(backup, busAddress, logFor('backup'));
  started.push(() => backups?.close());
  let isStopping = false;
  const gateway = await startGateway({
    listen: options.listen,
    isStopping: () => isStopping,
    contents: registry.artifacts,
    backups,
    bus,
    runs: new RunsRepository(store, { viewCharactersMax: KEPT_VIEW_CHARACTERS, log: logFor('gateway') }),
    store,
    partitions,
    audit,
    mode,
    apiKey: options.apiKey,
    adminKey: options.adminKey,
    jwtSecret,
    isSessionActive: storedSessions(store),
    publicRead: options.publicRead,
    corsOrigins: options.corsOrigins,
    rateLimits: options.rateLimits,
    trustProxy: options.trustProxy,
    playground: options.playground,
    introspection: options.introspection,
    streamsPerUser: options.streamsPerUser,
    tiers,
    tenantTier: options.tenantTier,
    logLevel: options.logLevel,
    triggerWaitSecs: options.triggerWaitSecs,
    meter,
    metrics: (accept) => allFigures(figures, () => meter.snapshot(), accept),
    onFileRead: (text, read) => tellOfFile(line, text, read),
    onRunAsked: () => {
      runAskedAt = performance.now();
    },
    log: logFor('gateway'),
    routes: [
      (app) => auth.addRoutes(app),
      (app) => ingest.addRoutes(app),
      (app, around) => registry.addRoutes(app, around),
      (app) => (fleet === undefined ? undefined : addFleetSocket(app, { port: fleet.port, jwtSecret, now: Date.now })),
    ],
  });
  listening = reachableUrl(gateway.url);
  started.push(() => gateway.close());
  return {
    url: gateway.url,
    port: gateway.port,
    announceStop: () => {
      isStopping = true;
    },
    answerRunner: (runner, verb, body) => registry.answerRunner(runner, verb, body),
    close: () => closeInTurn(started, logFor('serve')),
  };
}

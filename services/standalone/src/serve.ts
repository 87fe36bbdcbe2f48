/**
 * `penstock serve`: all services in one process on one machine, with an embedded broker and store (P17). They speak over
 * NATS exactly as they do apart, but for what they ask of each other (`answersItself`); this file only makes their dependencies, starts them in order and stops them in order.
 * What strangers speak to has a thread of its own (`api/api-thread.ts`).
 */
import { randomBytes } from 'node:crypto';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { connectBus, deleteBuckets, ensureStreams, linkThreads, RUNNER_LEASE_MS, type Bus } from '@penstock/bus';
import { pause, unlessAborted } from '@penstock/async';
import { type ExecutorKind, type IsolationLevel, killLeftovers, type StageLimits } from '@penstock/executor';
import type { MirrorCache } from '@penstock/git';
import { openMirrors } from '@penstock/git/mirrors';
import {
  defaultSlots,
  findExecutors,
  hostsOf,
  type KubernetesSettings,
  leastIsolation,
  startRunner,
  type Runner,
  type RunnerOptions,
} from '@penstock/runner';
import { LOG_BYTES_MAX, startScheduler, type Scheduler } from '@penstock/scheduler';
import { forgetCompiled, giveBackWhenIdle } from '@penstock/service';
import { auditCollections, openStore, runCollections, RunsRepository, StoredRetention } from '@penstock/store';
import { createLogger, type Logger } from '@penstock/telemetry';
import { Metrics, type Meter } from '@penstock/telemetry/metrics';
import { openTracer, tracesSecrets } from '@penstock/telemetry/traces';
import { ApiThread } from './api/api-thread.ts';
import { secretsOf } from './api/secrets-of.ts';
import type { ApiOptions } from './api/start-api.ts';
import type { BusAddress } from './bus-address.ts';
import { backupSettings } from './backup/backup-settings.ts';
import { refuseHalfRestored } from './backup/restore-mark.ts';
import { startEmbeddedBroker, type EmbeddedBroker } from './broker.ts';
import { FleetDoor } from './fleet-door.ts';
import { closeInTurn, type Closing } from './closing.ts';
import { makeDataFolder } from './data-folder.ts';
import { lockDataFolder } from './data-lock.ts';
import { checkListenAddress, listenProblem } from './listen-check.ts';

/** Beside what the API reads (`api/start-api.ts`). */
export interface ServeOptions extends Omit<ApiOptions, 'objectsUrl'> {
  readonly dataDir: string;
  readonly gitCredentialsFile?: string | undefined;
  readonly gitCacheBytesMax: number;
  /** `nats`, or a folder; default one in the data folder. */
  readonly objectsUrl?: string | undefined;
  readonly slots?: number | undefined;
  readonly labels?: readonly string[] | undefined;
  readonly runnerLeaseMs?: number | undefined;
  readonly queueTimeoutMs?: number | undefined;
  readonly logBytesMax?: number | undefined;
  readonly artifactExpireMs?: number | undefined;
  /** Hosts that no stage in a sandbox is to reach, beside the broker and the store. */
  readonly stageDeny: readonly string[];
  /** Folders of the machine that stages in a sandbox see beside its programs. */
  readonly stagePaths: readonly string[];
  /** Names of variables of this process that every stage is given. */
  readonly stageEnv: readonly string[];
  /** What a stage may take of the machine; of what is not said the machine's share. */
  readonly stageLimits?: Partial<StageLimits> | undefined;
  readonly keySlots?: number | undefined;
  /** Refuses the start where stages cannot be kept apart from this machine's other processes. */
  readonly isolationRequired: boolean;
  /** Which executors the runner has; absent: what it finds. */
  readonly executors?: readonly ExecutorKind[] | undefined;
  readonly untrustedIsolation?: IsolationLevel | undefined;
  readonly kubernetes?: KubernetesSettings | undefined;
  /** Running stages get so long when the server is told to stop. */
  readonly drainMs: number;
  /** A broker of one's own: comma-separated addresses. Absent: the embedded one, by this binary. */
  readonly natsUrl?: string | undefined;
  readonly natsBinary?: string | undefined;
  readonly natsSync?: 'default' | 'always' | undefined;
  readonly natsReplicas?: number | undefined;
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
/** Whoever watches a stage that was waited for reads its end, which is on its way, before the stream closes. */
const LAST_EVENTS_MS = 500;

/** `stop` ends a start that goes on: opening a large store takes minutes. Rejects with its reason then. */
export async function serve(options: ServeOptions, stop: AbortSignal): Promise<RunningServer> {
  const { dataDir } = options;
  await checkListenAddress(options.listen);
  refuseHalfRestored(dataDir);
  makeDataFolder(dataDir);
  const logFor = (service: string): Logger =>
    createLogger({
      service,
      level: options.logLevel ?? 'info',
      secrets: [...secretsOf(options), ...tracesSecrets(process.env)],
    });
  const log = logFor('serve');
  // Of no use after a restart: the attempts that slips are for are gone then.
  const slipKey = randomBytes(32).toString('base64');
  const started: Closing[] = [];
  let runner: Runner | undefined;
  try {
    const lock = lockDataFolder(dataDir);
    started.push(() => lock.release());
    forgetCompiled();
    const api = new ApiThread(log);
    started.push(() => api.close());
    const metrics = new Metrics({ process: true });
    const tracer = await openTracer(process.env, { service: 'serve', log, meter: metrics });
    started.push(() => tracer?.close());
    const storage: RunnerOptions['storage'] = (verb, body) => api.keep(RUNNER_ID, verb, body);
    const engine = await startEngine({ ...options, slipKey, meter: metrics, tracer, storage, stop }, logFor, started);
    runner = engine.runner;
    await unlessAborted(engine.settled(), stop);
    const { gitCredentialsFile: _file, natsUrl: _url, ...rest } = options;
    const objectsUrl = options.objectsUrl ?? join(dataDir, 'objects');
    const stageUids = process.getuid?.() === 0 ? options.stageUids : undefined;
    const fleet =
      engine.fleet === undefined ? undefined : { ...engine.fleet, logBytesMax: options.logBytesMax ?? LOG_BYTES_MAX };
    const backup = fleet === undefined ? undefined : backupSettings({ ...options, objectsUrl });
    const starting = api.start({ ...rest, slipKey, objectsUrl, stageUids, fleet, backup }, engine.busAddress, {
      mirrors: engine.mirrors,
      door: engine.door,
      figures: () => metrics.snapshot(),
      link: engine.link,
    });
    const url = await unlessAborted(starting, stop);
    // The API is the last to be started and the first to be closed.
    started.push(() => api.close());
    giveBackWhenIdle();
    return {
      url,
      async close(onWait) {
        const stages = engine.runner.runningStages();
        api.announceStop();
        if (stages.length > 0) onWait?.(stages);
        // While everything else still answers: whoever watches the stages sees how they end.
        await drain(engine.runner, options.drainMs, log);
        if (stages.length > 0) await pause(LAST_EVENTS_MS);
        await closeInTurn(started, log);
      },
    };
  } catch (error) {
    if (runner !== undefined && stop.aborted) await drain(runner, options.drainMs, log);
    await closeInTurn(started, log);
    throw listenProblem(error, options.listen);
  }
}

async function drain(runner: Runner, limitMs: number, log: Logger): Promise<void> {
  await runner.drain(limitMs).catch((error: unknown) => log.error({ err: error }, 'the runner did not drain'));
}

interface Engine {
  /** To the other thread. */
  readonly link: (port: MessagePort) => void;
  readonly busAddress: BusAddress;
  readonly mirrors: MirrorCache;
  readonly runner: Runner;
  /** Resolves when its runs are taken over. */
  settled(): Promise<void>;
  /** Undefined: the broker is not this server's own, which has no fleet then. */
  readonly door: FleetDoor | undefined;
  readonly fleet: Pick<NonNullable<ApiOptions['fleet']>, 'port' | 'logsBytesMax'> | undefined;
}

/** What must never wait for a stranger: the broker's supervisor, the scheduler and the runner. */
async function startEngine(
  options: ServeOptions &
    Pick<RunnerOptions, 'tracer' | 'storage'> & { readonly meter: Meter; readonly stop: AbortSignal },
  logFor: (service: string) => Logger,
  started: Closing[],
): Promise<Engine> {
  const { dataDir, partitions, runnerLeaseMs } = options;
  // Looking for a container engine takes as long as the broker does to come up.
  const finding = findExecutors({
    wanted: options.executors,
    mode: options.mode,
    stageUids: options.stageUids,
    kubernetes: options.kubernetes,
    onLacking: (kind, why) => logFor('runner').info({ executor: kind, why }, 'stages cannot run in one of these here'),
  });
  finding.catch(() => {});
  const leftoversFile = join(dataDir, 'leftovers');
  await killLeftovers(leftoversFile);
  const { bus, busAddress, leasesProvenDead, broker } = await startBus(options, logFor('serve'), started);
  const door = broker === undefined ? undefined : new FleetDoor({ broker, log: logFor('fleet') });
  started.push(() => door?.close());
  const store = await unlessAborted(openStore(options.store, [...runCollections, ...auditCollections]), options.stop);
  started.push(() => store.close());
  const scheduler: Scheduler = await startScheduler({
    bus,
    ledger: new RunsRepository(store, { log: logFor('scheduler') }),
    log: logFor('scheduler'),
    meter: options.meter,
    tracer: options.tracer,
    partitions,
    runnerLeaseMs,
    queueTimeoutMs: options.queueTimeoutMs,
    logBytesMax: options.logBytesMax,
    artifactExpireMs: options.artifactExpireMs,
    retention: { ledger: new StoredRetention(store), ...options.retention },
    keySlots: options.keySlots,
    slipKey: options.slipKey,
    leasesProvenDead,
    fleet: broker !== undefined,
  });
  started.push(() => scheduler.close());
  // The intake reads a file where the runner checks out the whole: one fetch serves both.
  const mirrors = openMirrors({
    folder: join(dataDir, 'mirrors'),
    bytesMax: options.gitCacheBytesMax,
    credentialsFile: options.gitCredentialsFile,
    log: logFor('git'),
    policy: { mode: options.mode, allowedHosts: options.webhooks.allowedHosts },
  });
  started.push(() => mirrors.close());
  const executors = await finding;
  const runner: Runner = await startRunner({
    bus,
    runnerId: RUNNER_ID,
    mirrors,
    slots: options.slots ?? defaultSlots(options.stageLimits?.memoryBytes),
    labels: [...new Set([platform(), arch(), ...(options.labels ?? [])])].toSorted(),
    dataDir,
    leaseMs: runnerLeaseMs ?? RUNNER_LEASE_MS,
    stageUids: options.stageUids,
    deniedHosts: [
      ...(options.natsUrl?.split(',') ?? []).flatMap(hostsOf),
      ...(options.store.kind === 'mongodb' ? hostsOf(options.store.url) : []),
      ...options.stageDeny,
    ],
    stagePaths: options.stagePaths,
    stageEnv: options.stageEnv,
    stageLimits: options.stageLimits,
    isolationRequired: options.isolationRequired,
    executors,
    untrustedIsolation: leastIsolation(options.untrustedIsolation, options.mode),
    leftoversFile,
    storage: options.storage,
    log: logFor('runner'),
    meter: options.meter,
    tracer: options.tracer,
  });
  started.push(() => runner.close());
  const fleet = broker === undefined ? undefined : { port: broker.fleetPort, logsBytesMax: broker.logsBytesMax };
  const link = (port: MessagePort): void => linkThreads(bus, port);
  return { link, busAddress, mirrors, runner, settled: () => scheduler.settled(), door, fleet };
}

async function startBus(
  options: ServeOptions,
  log: Logger,
  started: Closing[],
): Promise<{
  readonly bus: Bus;
  readonly busAddress: BusAddress;
  readonly leasesProvenDead: boolean;
  readonly broker: EmbeddedBroker | undefined;
}> {
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
  const busAddress: BusAddress =
    broker === undefined
      ? { servers: options.natsUrl ?? '' }
      : // Nobody else answers there; on a broker that is not this server's own there may be another one.
        { servers: broker.url, user: broker.user, pass: broker.password, answersItself: true };
  const bus = await connectBus({ ...busAddress, name: 'serve', log });
  started.push(() => bus.close());
  const limits =
    broker === undefined ? {} : { journalBytesMax: broker.journalBytesMax, logsBytesMax: broker.logsBytesMax };
  // The data folder's lock proves that everybody in these buckets is dead (P17). A broker that is shared proves nothing.
  const leasesProvenDead = broker !== undefined && (await deleteBuckets(bus));
  await ensureStreams(bus, {
    partitions: options.partitions,
    replicas: options.natsReplicas,
    fleet: broker !== undefined,
    logsAgeMsMax: options.retention.logMs,
    ...limits,
  });
  return { bus, busAddress, leasesProvenDead, broker };
}

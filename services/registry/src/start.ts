/** A running registry: on the bus for the other services, and with routes for a server that its process has. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { BrokerTime, subjects, type Bus, type BusSubscription } from '@penstock/bus';
import { generateSigningKeys, signPackage, type RegistryCaller } from '@penstock/extension';
import { SERVICE_TENANT } from '@penstock/run';
import { CacheEntries, DeletedRuns, RunsRepository } from '@penstock/store';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';
import { DirectDoor, type DirectDoorOptions } from './artifacts/direct-door.ts';
import { LogArchiveService } from './archive/log-archive-service.ts';
import { tellingWhenFull } from './artifacts/full-storage.ts';
import { Grants } from './artifacts/grants.ts';
import { IncomingUploads } from './artifacts/incoming.ts';
import { askOwner, sweptRuns } from './artifacts/swept-runs.ts';
import { ArtifactKeeper } from './artifacts/keeper.ts';
import { CacheKeeper } from './caches/cache-keeper.ts';
import { answerArtifactCalls } from './doors/artifact-calls.ts';
import { answerCacheCalls } from './doors/cache-calls.ts';
import { answerRegistryCalls } from './doors/calls.ts';
import { answerOwnRunner, answerRunners, runnerVerbs } from './doors/runner-door.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { Registry, type RegistryNews, type RegistryOptions } from './operations/registry.ts';
import { addRegistryRoutes, type RegistryRoutesOptions } from './doors/routes.ts';

export interface StartRegistryOptions extends Omit<RegistryOptions, 'announce'> {
  readonly bus: Bus;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** Where large contents come and go without the broker. Default: nowhere. */
  readonly contentsListen?: DirectDoorOptions['listen'] | undefined;
  /** Into how many the runs are divided. */
  readonly partitions: number;
  /** How long archived logs are kept. */
  readonly logRetentionMs: number;
}

export interface BuiltInPackage {
  /** For the log: its folder. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface RunningRegistry {
  readonly registry: Registry;
  readonly artifacts: Pick<ArtifactKeeper, 'sweep' | 'read'>;
  readonly caches: Pick<CacheKeeper, 'sweep'>;
  /** What the runner of this process asks, which needs no broker for it. Throws what the answer is on the bus. */
  answerRunner(runner: string, verb: string, body: unknown): Promise<unknown>;
  /** `PUT` and `GET /registry/packages/<sha256>`. */
  addRoutes(app: FastifyInstance, dependencies: Omit<RegistryRoutesOptions, 'registry'>): void;
  /** Publishes what is not published yet, for everybody, in the name of the tenant `service`. Never rejects: what fails is logged. */
  publishBuiltIns(packages: readonly BuiltInPackage[]): Promise<void>;
  close(): Promise<void>;
}

/** A sweep reads every record; what it removes is hours old. The first one is early, for servers that are often started. */
const SWEEP_MS = 60 * 60_000;
const FIRST_SWEEP_MS = 60_000;
const SERVICE_CALLER: RegistryCaller = { tenant: SERVICE_TENANT, tier: 'enterprise', isAdmin: false };

/** Resolves when the index has been read from the store; rejects where that does not answer. */
export async function startRegistry(given: StartRegistryOptions): Promise<RunningRegistry> {
  const { bus, log } = given;
  const options = { ...given, objects: tellingWhenFull(given.objects, log) };
  const instance = crypto.randomUUID();
  const registry = new Registry({
    ...options,
    sharedNow: given.now === undefined ? sharedClock(bus) : undefined,
    announce: (news) => bus.publish(subjects.registryChanged, { ...news, from: instance }),
  });
  const failed =
    (what: string) =>
    (error: unknown): void =>
      log.warn({ err: error }, `${what} failed; trying again later`);
  const subscriptions: BusSubscription[] = [
    // Before the index is read: what changes meanwhile is heard.
    bus.subscribe<RegistryNews & { readonly from: string }>(subjects.registryChanged, async ({ from, ...news }) => {
      if (from !== instance) await registry.learn(news);
    }),
  ];
  await registry.load();
  const { contentsListen: listen } = options;
  const door =
    listen === undefined ? undefined : await DirectDoor.open({ listen, log, meter: options.meter ?? noMeter });
  const now = options.now ?? Date.now;
  subscriptions.push(answerRegistryCalls(bus, registry, now));
  const { store, objects } = options;
  // Only a sweep looks at runs.
  const runOf = sweptRuns({
    runs: new RunsRepository(store),
    deleted: new DeletedRuns(store),
    isWithOwner: askOwner(bus, options.partitions),
  });
  const grants = new Grants(bus);
  const incoming = new IncomingUploads(door);
  const artifacts = new ArtifactKeeper({ bus, store, objects, now, runOf, grants, incoming, door });
  const caches = new CacheKeeper({ bus, entries: new CacheEntries(store), objects, now, grants, incoming, door });
  const verbs = runnerVerbs(artifacts, caches);
  subscriptions.push(answerArtifactCalls(bus, artifacts), answerCacheCalls(bus, caches), answerRunners(bus, verbs));
  const { logRetentionMs } = options;
  const logArchive = new LogArchiveService({ bus, store, objects, log, logRetentionMs });
  const load = (): void => void registry.load().catch(failed('reading the extensions again'));
  bus.events.on('reconnected', load);
  // News whose extension could not be read when they came are made up for by a load. A sweep of many may take longer than an hour.
  const hourly = [
    oneAtATime(() => registry.load(), failed('reading the extensions again')),
    oneAtATime(() => registry.sweep(), failed('sweeping')),
    oneAtATime(() => artifacts.sweep(), failed('sweeping artifacts')),
    oneAtATime(() => caches.sweep(), failed('sweeping caches')),
  ];
  const sweep = (): void => hourly.forEach((start) => start());
  const timers = [setTimeout(sweep, FIRST_SWEEP_MS).unref(), setInterval(sweep, SWEEP_MS).unref()];
  return {
    registry,
    artifacts,
    caches,
    answerRunner: (runner, verb, body) => answerOwnRunner(verbs, incoming, runner, verb, body),
    addRoutes: (app, dependencies) => addRegistryRoutes(app, { registry, ...dependencies }),
    publishBuiltIns: (packages) => publishBuiltIns(registry, packages, log),
    async close() {
      for (const timer of timers) clearTimeout(timer);
      bus.events.off('reconnected', load);
      for (const subscription of subscriptions) subscription.stop();
      incoming.close();
      await door?.close();
      await logArchive.close();
      await registry.close();
    },
  };
}

/** The broker's; this machine's where that cannot be had. */
function sharedClock(bus: Bus): () => Promise<number> {
  const broker = new BrokerTime(bus, 'registry');
  return async () => {
    const now = await broker.latest().catch(() => Number.NaN);
    return Number.isNaN(now) ? Date.now() : Math.round(now);
  };
}

async function publishBuiltIns(
  registry: Registry,
  packages: readonly BuiltInPackage[],
  log: RegistryOptions['log'],
): Promise<void> {
  let signed: ((packageHash: string) => string) | undefined;
  for (const { name, bytes } of packages) {
    const packageHash = createHash('sha256').update(bytes).digest('hex');
    try {
      if ((await registry.findPackage({ ...SERVICE_CALLER, tenant: null }, packageHash)) !== null) continue;
      signed ??= await newSigner(registry);
      await registry.upload(SERVICE_CALLER, packageHash, Readable.from([bytes]));
      const { version } = await registry.publish({
        caller: SERVICE_CALLER,
        packageHash,
        visibility: 'public',
        signature: signed(packageHash),
      });
      log.info({ extension: version.extensionId, version: version.version }, 'published an extension that comes along');
    } catch (error) {
      log.warn({ err: error, name }, 'an extension that comes along could not be published');
    }
  }
}

/** A key for what this start publishes, forgotten with it: so what comes along can be used where only signed extensions are. */
async function newSigner(registry: Registry): Promise<(packageHash: string) => string> {
  const { publicKey, privateKey } = generateSigningKeys();
  await registry.keys.register(SERVICE_TENANT, { publicKey, name: 'what comes along' }, Date.now());
  return (packageHash) => signPackage(packageHash, privateKey);
}

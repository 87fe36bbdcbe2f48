/** Builds the gateway, complete but not listening: `start.ts` lets it listen, tests use `inject`. */
import type { FastifyInstance } from 'fastify';
import packageJson from '../package.json' with { type: 'json' };
import { randomBytes } from 'node:crypto';
import { loadTiers, runLimitsOf } from '@penstock/config';
import { addDashboardRoutes } from '@penstock/dashboard';
import { callAuth, openIdentity, tenantOfUser } from '@penstock/identity';
import { noAudit } from '@penstock/store';
import { KeptFiles } from './artifacts/kept-files.ts';
import { addArtifactRoutes } from './artifacts/routes.ts';
import { addGraphqlRoute } from './graphql/route.ts';
import { addInfoRoutes } from './http/info-routes.ts';
import { addMetricsRoute } from './http/metrics-route.ts';
import { buildServer } from '@penstock/http';
import { silentLog } from '@penstock/telemetry/log';
import { noMeter } from '@penstock/telemetry/metrics';
import type { GatewayOptions } from './ports.ts';
import { CommittingSchedulers, Owners, RunReads } from '@penstock/run-client';
import { within } from '@penstock/async';
import { RefusalAudit } from './audit/refusal-audit.ts';
import { addPlaygroundRoutes } from './playground/routes.ts';
import { usesResolver } from './runs/extensions.ts';
import { repositoryFile } from './runs/repository-file.ts';
import { decideAnew } from './runs/decided-anew.ts';
import { createdOf, runToRepeat } from './runs/rerun.ts';
import { People } from './people/people.ts';
import { Trigger } from './runs/trigger.ts';
import { OpenPlaces } from './sse/open-places.ts';
import { StoredArchivedLogs } from './sse/archived-logs.ts';
import { addStreamRoute } from './sse/route.ts';
import { RunChanges } from './sse/run-changes.ts';
import { addRunChangesRoute } from './sse/run-changes-route.ts';
import { Streams } from './sse/streams.ts';
import { Tickets } from './sse/tickets.ts';

const TRIGGER_WAIT_SECS = 15;
const TRIGGER_WAITS_MAX = 10_000;
const STREAMS_MAX = 10_000;
const STREAMS_PER_USER = 100;
/** Downloads under way in this process: each holds a few megabytes. */
const DOWNLOADS_MAX = 200;
const DOWNLOADS_PER_USER = 20;
const CONNECTIONS_MAX = 20_000;
/** A gateway begins when it knows the revocations. If the broker keeps it waiting for longer, it begins all the same, and asks auth. */
const READY_MS_MAX = 1_000;

/** Ends with `app.close()`; the bus and the store are the caller's to close. Throws a RangeError on a bad CORS origin or proxy address. */
export async function buildGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const log = options.log ?? silentLog;
  const meter = options.meter ?? noMeter;
  const { version } = packageJson;
  const app = buildServer({
    corsOrigins: options.corsOrigins ?? [],
    connectionsMax: options.connectionsMax ?? CONNECTIONS_MAX,
    rateLimits: options.rateLimits,
    trustProxy: options.trustProxy,
    loopbackHostsOnly: options.mode === 'development',
    log,
    meter,
  });
  const now = options.now ?? Date.now;
  const tiers = options.tiers ?? loadTiers();
  const audit = options.audit ?? noAudit;
  // Without a configured secret there are no tokens: nobody else knows this one.
  const jwtSecret = options.jwtSecret ?? randomBytes(32).toString('hex');
  const { bus, runs, store, apiKey, publicRead, authenticators } = options;
  const identity = openIdentity({
    bus,
    apiKey,
    adminKey: options.adminKey,
    apiKeyAdministers: options.mode === 'development',
    jwtSecret,
    publicRead,
    authenticators,
    isSessionActive: options.isSessionActive,
    withGrants: true,
    now,
  });
  const { callers, revocations, isSessionActive } = identity;
  const tickets = new Tickets({
    bus,
    store,
    secret: jwtSecret,
    apiKey,
    revocations,
    isSessionActive,
    grantsOf: identity.grantsOf,
    now,
  });
  const refusalAudit = new RefusalAudit(audit, now);
  refusalAudit.watch(app);
  const owners = new Owners(bus, options.partitions, options.ownerMsMax);
  const reads = new RunReads(owners, runs);
  const uses = usesResolver(bus, options.ownerMsMax);
  const trigger = new Trigger(
    { bus, owners, reads },
    {
      waitSecs: options.triggerWaitSecs ?? TRIGGER_WAIT_SECS,
      waitsMax: options.triggerWaitsMax ?? TRIGGER_WAITS_MAX,
      now,
      tierOf: async (tenant) => (await callAuth(bus, 'user', { id: tenant.slice(tenantOfUser('').length) })).tier,
      limitsOf: ({ user }) => runLimitsOf(tiers, user?.tier ?? options.tenantTier),
      uses,
      fileOf: (caller, asked) => repositoryFile(bus, caller, asked),
      decideAnew: (asked, signal) => decideAnew({ bus, reads }, asked, signal),
      runToRepeat: (caller, id) => runToRepeat({ owners, reads, store: runs }, caller, id),
      createdOf: (view) => createdOf({ owners, store: runs }, view),
      onAsked: options.onRunAsked,
      onRead: options.onFileRead,
    },
  );
  const streams = new Streams(log, { meter });
  const changes = new RunChanges({ bus, owners, reads, log, now });
  const openStreams = new OpenPlaces({
    what: 'log streams',
    max: options.streamsMax ?? STREAMS_MAX,
    perUserMax: options.streamsPerUser ?? STREAMS_PER_USER,
  });
  meter.gauge('penstock_stream_clients', () => [{ labels: {}, value: streams.size + changes.size }]);
  const kept = new KeptFiles(bus, now, options.contents);
  const people = new People(bus, now);
  app.addHook('onReady', () => within(READY_MS_MAX, revocations.ready, () => {}));
  app.addHook('preClose', () => {
    trigger.stopWaiting();
    streams.stop();
    changes.stop();
  });
  app.addHook('onClose', async () => {
    owners.close();
    tickets.close();
    await identity.close();
  });

  addInfoRoutes(app, {
    version,
    bus,
    store,
    committing: new CommittingSchedulers(bus),
    isStopping: options.isStopping ?? (() => false),
  });
  if (options.metrics !== undefined) addMetricsRoute(app, { callers, read: options.metrics });
  const server = {
    mode: options.mode ?? 'development',
    logLevel: options.logLevel ?? 'info',
    apiAuthenticated: apiKey !== undefined,
  };
  await addGraphqlRoute(app, {
    version,
    owners,
    store: runs,
    reads,
    trigger,
    uses,
    callers,
    audit,
    kept,
    people,
    refusalAudit,
    backups: options.backups,
    now,
    log,
    identity: {
      bus,
      version,
      tiers,
      reads,
      people,
      tickets,
      revocations,
      audit,
      reportUses: () => identity.reportUses(),
      server,
      now,
    },
    introspection: options.introspection ?? true,
  });
  if (options.playground === true) addPlaygroundRoutes(app);
  addDashboardRoutes(app);
  addStreamRoute(app, {
    bus,
    owners,
    store: runs,
    archive: new StoredArchivedLogs(bus, options.store),
    reads,
    callers,
    revocations,
    tickets,
    people,
    streams,
    openStreams,
  });
  addRunChangesRoute(app, { callers, revocations, changes, openStreams });
  addArtifactRoutes(app, {
    reads,
    callers,
    tickets,
    people,
    kept,
    downloads: new OpenPlaces({ what: 'downloads', max: DOWNLOADS_MAX, perUserMax: DOWNLOADS_PER_USER }),
  });
  for (const add of options.routes ?? []) await add(app, { callers });
  return app;
}

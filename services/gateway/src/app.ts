/** The gateway, complete but not listening: for `inject` in tests, and for `main.ts`. */
import type { FastifyInstance } from 'fastify';
import packageJson from '../package.json' with { type: 'json' };
import { Callers } from '@penstock/identity';
import { addGraphqlRoute } from './graphql/route.ts';
import { addInfoRoutes } from './http/info-routes.ts';
import { buildServer, silentLog } from '@penstock/http';
import type { GatewayOptions } from './ports.ts';
import { Owners, RunReads } from '@penstock/run-client';
import { addPlaygroundRoutes } from './playground/routes.ts';
import { Trigger } from './runs/trigger.ts';
import { addStreamRoute } from './stream/route.ts';
import { Streams } from './stream/streams.ts';

const TRIGGER_WAIT_SECS = 15;
const TRIGGER_WAITS_MAX = 10_000;
const STREAMS_MAX = 10_000;
const CONNECTIONS_MAX = 20_000;

/** Ends with `app.close()`; the bus and the store are the caller's to close. Throws a RangeError on a bad CORS origin or proxy address. */
export async function buildGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const log = options.log ?? silentLog;
  const { version } = packageJson;
  const app = buildServer({
    corsOrigins: options.corsOrigins ?? [],
    connectionsMax: options.connectionsMax ?? CONNECTIONS_MAX,
    rateLimits: options.rateLimits,
    trustProxy: options.trustProxy,
    log,
  });
  const callers = new Callers(options);
  const owners = new Owners(options.bus, options.partitions, options.ownerMsMax);
  const reads = new RunReads(owners, options.runs);
  const trigger = new Trigger(
    { bus: options.bus, owners, reads },
    {
      waitSecs: options.triggerWaitSecs ?? TRIGGER_WAIT_SECS,
      waitsMax: options.triggerWaitsMax ?? TRIGGER_WAITS_MAX,
      now: options.now ?? Date.now,
    },
  );
  const streams = new Streams(log);
  app.addHook('preClose', () => {
    trigger.stopWaiting();
    streams.stop();
  });
  app.addHook('onClose', () => owners.close());

  addInfoRoutes(app, { version, bus: options.bus, store: options.store });
  await addGraphqlRoute(app, { version, owners, reads, trigger, callers, log, introspection: options.introspection ?? true });
  if (options.playground === true) addPlaygroundRoutes(app);
  addStreamRoute(app, {
    bus: options.bus, owners, store: options.runs, reads, callers, streams, streamsMax: options.streamsMax ?? STREAMS_MAX,
  });
  for (const add of options.routes ?? []) await add(app, { callers });
  return app;
}

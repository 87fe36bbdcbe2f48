/** `GET /`, `GET /health`, `GET /ready`: what this server is, that it lives, and whether it can do its work. */
import type { Bus } from '@penstock/bus';
import type { FastifyInstance } from 'fastify';
import { Unavailable } from '@penstock/errors';
import { within } from '@penstock/async';

export interface InfoRoutesOptions {
  readonly version: string;
  readonly bus: Bus;
  readonly store: { ping(): Promise<void> };
  readonly committing: { check(): Promise<void> };
  readonly isStopping: () => boolean;
}

/** A probe that takes longer counts as a failure. */
const PROBE_MS_MAX = 2_000;

const READ = { config: { tier: 'read' } } as const;

export function addInfoRoutes(app: FastifyInstance, options: InfoRoutesOptions): void {
  const info = JSON.stringify({
    name: 'penstock',
    version: options.version,
    endpoints: { graphql: '/graphql', health: '/health', webhook: '/webhook' },
  });
  app.get('/', READ, (_request, reply) => reply.type('application/json; charset=utf-8').send(info));

  app.get('/health', READ, (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok'));

  app.get('/ready', READ, async (_request, reply) => {
    if (options.isStopping()) throw new Unavailable('Not ready: the server is stopping.');
    const [broker, store, committing] = await Promise.all([
      answers(async () => {
        if (!options.bus.connected) throw new Error('not connected');
        await options.bus.flush(PROBE_MS_MAX);
      }),
      answers(() => options.store.ping()),
      answers(() => options.committing.check()),
    ]);
    const away = [...(broker ? [] : ['broker']), ...(store ? [] : ['store'])];
    if (away.length > 0) throw new Unavailable(`Not ready: the ${away.join(' and the ')} cannot be reached.`);
    if (!committing)
      throw new Unavailable('Not ready: no scheduler can commit; the broker may be out of room, or electing a leader.');
    return reply.send({ status: 'ready', broker: 'ok', store: 'ok' });
  });
}

function answers(probe: () => Promise<void>): Promise<boolean> {
  const answered = probe().then(
    () => true,
    () => false,
  );
  return within(PROBE_MS_MAX, answered, () => false);
}

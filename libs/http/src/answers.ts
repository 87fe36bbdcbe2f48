/** Counts what a server answers, and how long that takes: by its routes, of which there are few, never by paths. */
import type { Log } from '@penstock/telemetry/log';
import type { FastifyInstance } from 'fastify';
import type { Meter } from '@penstock/telemetry/metrics';

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Of requests that no route is for. */
const NO_ROUTE = 'none';

export function countAnswers(app: FastifyInstance, meter: Meter, log: Pick<Log, 'debug'>): void {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.is404 ? NO_ROUTE : (request.routeOptions.url ?? NO_ROUTE);
    const method = METHODS.has(request.method) ? request.method : 'other';
    meter.add('penstock_http_requests_total', { route, method, code: String(reply.statusCode) });
    // How long somebody watches says nothing of the server.
    if (request.routeOptions.config.isStream !== true)
      meter.observe('penstock_http_seconds', { route }, reply.elapsedTime / 1_000);
    log.debug(
      { requestId: request.id, route, method, code: reply.statusCode, milliseconds: Math.round(reply.elapsedTime) },
      'a request was answered',
    );
    done();
  });
}

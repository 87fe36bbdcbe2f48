/** `GET /metrics` of a server that is all services in one: what they count, for whoever has the API key. */
import { Forbidden, Unauthenticated } from '@penstock/errors';
import type { Callers } from '@penstock/identity';
import type { MetricsText } from '@penstock/telemetry/metrics';
import type { FastifyInstance } from 'fastify';

export interface MetricsRouteOptions {
  readonly callers: Callers;
  /** In the form that the header asks for. */
  read(accept: string | undefined): Promise<MetricsText>;
}

export function addMetricsRoute(app: FastifyInstance, { callers, read }: MetricsRouteOptions): void {
  app.get('/metrics', { config: { tier: 'read' } }, async (request, reply) => {
    const caller = await callers.resolve(request.headers.authorization);
    if (caller.kind === 'anonymous') throw new Unauthenticated();
    if (caller.kind !== 'api-key') throw new Forbidden('The figures of the server are for who has its API key.');
    const { type, body } = await read(request.headers.accept);
    return reply.type(type).send(body);
  });
}

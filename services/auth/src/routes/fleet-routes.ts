/** `POST /runners/attach`: a machine becomes a runner of the fleet by a token (P37); the paths are those of `FLEET_PATHS`. */
import { Unauthenticated } from '@penstock/errors';
import { bearerTokenOf } from '@penstock/identity';
import type { FastifyInstance } from 'fastify';
import type { Fleet } from '../flows/fleet.ts';
import { fieldsOf, textField } from './bodies.ts';
import type { RequestAudit } from './request-audit.ts';
import type { Tries } from './tries.ts';

export interface FleetRoutesOptions {
  readonly fleet: Fleet;
  readonly tries: Tries;
  readonly audit: RequestAudit;
}

export function addFleetRoutes(app: FastifyInstance, { fleet, tries, audit }: FleetRoutesOptions): void {
  app.post('/runners/attach', { config: { tier: 'api' } }, async (request, reply) => {
    // A ticket stands in the answer.
    reply.header('Cache-Control', 'no-store');
    const { clientAddress } = request;
    tries.check(clientAddress);
    const { name } = fieldsOf(request.body);
    const publicKey = textField(request.body, 'public_key');
    try {
      const token = bearerTokenOf(request.headers.authorization) ?? '';
      return await reply.send(await fleet.attach(token, publicKey, typeof name === 'string' ? name : ''));
    } catch (error) {
      if (error instanceof Unauthenticated) {
        tries.failed(clientAddress);
        audit.refused(request, 'runner.attach', 'unauthenticated');
      }
      throw error;
    }
  });

  // With an upgrade to WebSocket, and a ticket, a request for it comes to no route: it is led to the broker.
  app.get('/runners/socket', { config: { tier: 'read' } }, async (_request, reply) =>
    reply
      .code(426)
      .header('Upgrade', 'websocket')
      .send({ error: 'upgrade_required', message: 'Runners of the fleet connect here, by WebSocket.' }),
  );
}

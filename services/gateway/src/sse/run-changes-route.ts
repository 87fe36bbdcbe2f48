/** `GET /runs/events`: decides who may hear of which runs, and opens the stream. */
import { clientKeyOf } from '@penstock/http';
import { Unauthenticated } from '@penstock/errors';
import { requireReader, type Callers } from '@penstock/identity';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { OpenPlaces } from './open-places.ts';
import type { RunChanges } from './run-changes.ts';
import { openStream, type StreamRevocations } from './open-stream.ts';
import { STREAM_HEADERS } from './stream-headers.ts';
import { queryText } from './watcher.ts';

export interface RunChangesRouteOptions {
  readonly callers: Callers;
  readonly revocations: StreamRevocations;
  readonly changes: RunChanges;
  /** Shared with the log streams. */
  readonly openStreams: OpenPlaces;
}

export function addRunChangesRoute(app: FastifyInstance, options: RunChangesRouteOptions): void {
  const { callers, revocations, changes, openStreams } = options;
  app.route({
    method: ['GET', 'HEAD'],
    url: '/runs/events',
    config: { tier: 'read', isStream: true },
    handler: async (request, reply) => {
      const accessSeen = revocations.accessChanges;
      const caller = await callers.resolve(request.headers.authorization, queryText(request, 'token'));
      if (callers.streamsNeedToken && caller.kind === 'anonymous') throw new Unauthenticated();
      const tenants = requireReader(caller);
      if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
      const giveBack = openStreams.take(caller.user?.id, clientKeyOf(request.clientAddress));
      try {
        // Who is let in somewhere comes back, and hears of those runs too.
        await openStream(reply, { ...caller, isGranted: true }, revocations, accessSeen, (client) =>
          changes.serve(client, tenants, cursorOf(request)),
        );
      } finally {
        giveBack();
      }
    },
  });
}

/** The header is newer than the address, which a browser repeats. */
function cursorOf(request: FastifyRequest): string | undefined {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && header !== '' ? header : queryText(request, 'lastEventId');
}

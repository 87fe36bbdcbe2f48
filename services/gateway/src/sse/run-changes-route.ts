/** `GET /runs/events`: decides who may hear of which runs, and opens the stream. */
import { clientKeyOf } from '@penstock/http';
import { Unauthenticated } from '@penstock/errors';
import { requireReader, type Callers } from '@penstock/identity';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { People } from '../people/people.ts';
import type { OpenPlaces } from './open-places.ts';
import type { RunChanges } from './run-changes.ts';
import { openStream, type StreamRevocations } from './open-stream.ts';
import { STREAM_HEADERS } from './stream-headers.ts';
import { queryText } from './watcher.ts';

export interface RunChangesRouteOptions {
  readonly callers: Callers;
  readonly people: Pick<People, 'namesOf'>;
  readonly revocations: StreamRevocations;
  readonly changes: RunChanges;
  /** Shared with the log streams. */
  readonly openStreams: OpenPlaces;
}

export function addRunChangesRoute(app: FastifyInstance, options: RunChangesRouteOptions): void {
  const { callers, people, revocations, changes, openStreams } = options;
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
        const namesOf = (): Promise<readonly string[]> => people.namesOf(caller);
        // Whoever reads its own runs alone does so while nobody can say what it is known by.
        const names = await namesOf().catch(() => undefined);
        // Who is let in somewhere comes back, and hears of those runs too.
        await openStream(reply, { ...caller, isGranted: true }, revocations, accessSeen, (client) =>
          changes.serve(client, { tenants, names, namesOf }, cursorOf(request)),
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

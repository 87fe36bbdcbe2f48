/** `GET /pipeline/{id}/logs`: decides who may watch and from where on, and opens the stream. */
import type { Bus } from '@penstock/bus';
import { closesRun, isEnded, isRunId, type RunEvent, type RunView } from '@penstock/run';
import type { RunsReader } from '@penstock/store';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Callers } from '@penstock/identity';
import { clientKeyOf } from '@penstock/http';
import { NotFound } from '@penstock/errors';
import type { Owners, RunReads } from '@penstock/run-client';
import { Cursor } from '../event-stream/cursor.ts';
import type { People } from '../people/people.ts';
import type { OpenPlaces } from './open-places.ts';
import { queryText, watcherOf } from './watcher.ts';
import type { ArchivedLogs } from './archived-logs.ts';
import { BusRunSource } from './run-source.ts';
import { openStream, type StreamRevocations } from './open-stream.ts';
import { STREAM_HEADERS } from './stream-headers.ts';
import type { Streams } from './streams.ts';
import type { Tickets } from './tickets.ts';

export interface StreamRouteOptions {
  readonly bus: Bus;
  readonly owners: Owners;
  readonly store: RunsReader;
  readonly archive: ArchivedLogs;
  readonly reads: RunReads;
  readonly callers: Callers;
  readonly revocations: StreamRevocations;
  readonly tickets: Tickets;
  readonly people: People;
  readonly streams: Streams;
  readonly openStreams: OpenPlaces;
}

export function addStreamRoute(app: FastifyInstance, options: StreamRouteOptions): void {
  const { openStreams, reads, revocations, streams, tickets } = options;

  app.route<{ Params: { readonly id: string } }>({
    method: ['GET', 'HEAD'],
    url: '/pipeline/:id/logs',
    config: { tier: 'read', isStream: true },
    handler: async (request, reply) => {
      const runId = request.params.id;
      const accessSeen = revocations.accessChanges;
      const { tenants, namesOf, credential, ticket } = await watcherOf(options, request, runId, { inAddress: 'token' });
      const run = isRunId(runId) ? await reads.view(runId, tenants, namesOf) : null;
      if (run === null) throw new NotFound('There is no such run.');
      const isGranted = !tenants.includes(run.tenant);
      if (ticket !== undefined) await tickets.use(ticket, run.finishedAt === null ? null : Date.parse(run.finishedAt));
      const source = new BusRunSource(options, runId, [run.tenant]);
      let isLive = !isEnded(run.status);

      let cursor = cursorOf(request, runId);
      if (streams.foundNoEvents(runId)) await source.events(run.version);
      if (!isLive && (cursor.version > 0 || mayStillStop(run))) {
        const events = await source.events(0);
        isLive = !events.some(closesRun);
        const last = lastVersion(events);
        if (!isLive && cursor.version === last) return reply.code(204).send();
        if (cursor.version > last) cursor = new Cursor();
      } else if (cursor.version > run.version) {
        // The cursor is of a history that this run does not have: the client receives everything anew.
        cursor = new Cursor();
      }
      if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
      const giveBack = openStreams.take(credential.user?.id, clientKeyOf(request.clientAddress));
      try {
        await openStream(reply, { ...credential, isGranted }, revocations, accessSeen, (client) =>
          streams.serve(client, source, cursor, isLive),
        );
      } finally {
        giveBack();
      }
    },
  });
}

/** With an unknown cursor, as without one, the client receives the whole event stream. The header is newer than the address, which a browser repeats. */
function cursorOf(request: FastifyRequest, runId: string): Cursor {
  const header = request.headers['last-event-id'];
  const cursor = typeof header === 'string' && header !== '' ? header : queryText(request, 'lastEventId');
  return (cursor === undefined ? null : Cursor.decode(cursor, runId)) ?? new Cursor();
}

/** A run that was cancelled or quarantined has ended, and its processes may live a while. */
function mayStillStop({ status, outcome }: RunView): boolean {
  return status === 'CANCELLED' || outcome === 'quarantined';
}

/** The version of the event that is emitted last, as far as it is known. */
function lastVersion(events: readonly RunEvent[]): number {
  const index = events.findIndex(closesRun);
  return index < 0 ? events.length : index + 1;
}

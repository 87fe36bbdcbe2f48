/** Each request has an id: the one that it brought along, where that is one, else a new one. All that is done for it knows the id. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  REQUEST_ID_HEADER,
  requestIdOf,
  TRACEPARENT_HEADER,
  traceparentOf,
  withRequest,
  type RequestContext,
} from '@penstock/telemetry/request';
import type { FastifyInstance, FastifyRequest } from 'fastify';

export function idOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return requestIdOf(headers[REQUEST_ID_HEADER.toLowerCase()]) ?? randomUUID();
}

/** For what is answered before it is a request. */
export function newIdHeader(): Readonly<Record<string, string>> {
  return { [REQUEST_ID_HEADER]: randomUUID() };
}

export function idHeader(request: Pick<FastifyRequest, 'id'>): Readonly<Record<string, string>> {
  return { [REQUEST_ID_HEADER]: request.id };
}

export function serveByRequest(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => withRequest(contextOf(request), done));
  // A body comes by events of its connection, which belongs to no request.
  app.addHook('preValidation', (request, _reply, done) => withRequest(contextOf(request), done));
}

function contextOf(request: FastifyRequest): RequestContext {
  const traceparent = traceparentOf(request.headers[TRACEPARENT_HEADER]);
  return traceparent === undefined ? { id: request.id } : { id: request.id, traceparent };
}

/** Bodies of HTML forms, for the pages alone: a page elsewhere can have a browser send them, so that each of ours brings what only it has. */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { textOf } from '@penstock/http';

const FORM_TYPE = 'application/x-www-form-urlencoded';

/** On an encapsulated instance, so that no other route takes forms. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    FORM_TYPE,
    async (request: FastifyRequest, payload: Readable) => new URLSearchParams(await textOf(request, payload)),
  );
}

/** Leaves the bytes of a form to whoever reads the socket. */
export function leaveForms(app: FastifyInstance): void {
  app.addContentTypeParser(FORM_TYPE, (_request, _payload, done) => done(null));
}

export function formOf(request: FastifyRequest): URLSearchParams {
  return request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
}

/** Fields of JSON bodies: there and of the right type, or 400 `bad_request` naming the field. */
import { BadUserInput } from '@penstock/errors';
import type { FastifyInstance } from 'fastify';

/**
 * On an encapsulated instance: its bodies are JSON whatever the client calls them, as `curl -d` calls everything a form and `fetch` every
 * string a text. For routes that no cookie authenticates: a page elsewhere can have a browser send these types, with its cookies.
 */
export function takeAllAsJson(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    request.raw.headers['content-type'] = 'application/json';
    done();
  });
}

export function textField(body: unknown, name: string): string {
  const value = fieldsOf(body)[name];
  if (typeof value !== 'string' || value === '')
    throw new BadUserInput(`The field '${name}' is missing or is not a text.`, { field: name });
  return value;
}

/** False where it is not there. */
export function flagField(body: unknown, name: string): boolean {
  const value = fieldsOf(body)[name] ?? false;
  if (typeof value !== 'boolean') throw new BadUserInput(`The field '${name}' is not true or false.`, { field: name });
  return value;
}

/** Answers the fields of a body that is an object; no body counts as an empty one. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined || body === null) return {};
  if (typeof body !== 'object' || Array.isArray(body)) throw new BadUserInput('The body is not a JSON object.');
  return body as Record<string, unknown>;
}

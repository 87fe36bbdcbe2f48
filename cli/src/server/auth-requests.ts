/** Requests to the server's `/auth` endpoints, which take and give JSON. */
import { ServerAway, ServerFault, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { foreignAnswer } from './graphql.ts';
import { ANSWER_MS_MAX, readBody, serverClient, unreachable } from './http-client.ts';
import { fieldOf, parseJson } from './json.ts';
import type { ServerAddress } from './server-address.ts';

export interface AuthAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Sends a POST of `fields`, or without them a GET, with the token if there is one. Throws ServerError where no server of ours answers. */
export async function askAuth(
  server: ServerAddress,
  path: string,
  fields?: Readonly<Record<string, unknown>>,
  token?: string,
): Promise<AuthAnswer> {
  const client = serverClient(server, { token, source: 'the login' });
  let status: number;
  let text: string;
  try {
    const response = await client.fetch(path, {
      ...(fields === undefined ? {} : { method: 'POST', body: JSON.stringify(fields) }),
      headers: { accept: 'application/json', ...(fields === undefined ? {} : { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    status = response.status;
    text = await readBody(response);
  } catch (error) {
    throw unreachable(server, error);
  }
  const body = parseJson(text);
  if (typeof body !== 'object' || body === null) {
    const Failure = status >= 500 ? ServerAway : ServerUnreached;
    throw new Failure(foreignAnswer(server.base, status));
  }
  if (status === 404)
    throw new ServerUnreached(`${server.base} knows no logins: is it a Penstock server of this version?`);
  if (status >= 500) {
    const Failure = status === 500 ? ServerFault : ServerAway;
    throw new Failure(`the server ${server.base} cannot do that now${messageOf(body)}`);
  }
  return { status, body };
}

/** `: what the server says`, or nothing. */
export function messageOf(body: unknown): string {
  const message = fieldOf(body, 'message');
  return typeof message === 'string' ? `: ${printableText(message)}` : '';
}

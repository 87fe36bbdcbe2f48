/** Requests to a server of ours: the token, deadlines, bounded answers, and one sentence for each way to fail. */
import { ServerAway, ServerError, ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import type { ServerCredentials } from './credentials.ts';
import type { ServerAddress } from './server-address.ts';

/** A trigger is answered within the server's own 10 s; this is for a server that says nothing at all. */
export const ANSWER_MS_MAX = 30_000;
/** A run of 2,000 stages with all their names is well below. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

export interface ServerClient {
  readonly server: ServerAddress;
  readonly credentials: ServerCredentials;
  fetch(path: string, init: RequestInit): Promise<Response>;
}

export function serverClient(server: ServerAddress, credentials: ServerCredentials): ServerClient {
  return {
    server,
    credentials,
    async fetch(path, init) {
      const headers = new Headers(init.headers);
      const token = credentials.current === undefined ? credentials.token : await credentials.current();
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
      const response = await fetch(`${server.base}${path}`, { ...init, headers, redirect: 'manual' });
      if (response.status >= 300 && response.status < 400) {
        await response.body?.cancel();
        const target = response.headers.get('location');
        throw new ServerUnreached(
          `${server.base} sends its callers on${target === null ? '' : ` to ${printableText(target)}`}: name the final address with --server`,
        );
      }
      return response;
    },
  };
}

/** Reads all of an answer, within a bound. */
export async function readBody(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > ANSWER_BYTES_MAX)
      throw new ServerUnreached(
        `the server's answer is longer than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB: is it a Penstock server?`,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Why a request did not reach the server or its answer did not come. */
export function unreachable(server: ServerAddress, error: unknown): ServerError {
  if (error instanceof ServerError) return error;
  const start = server.isLoopback
    ? "; start one with 'penstock serve', or name another with --server"
    : '; check the address and the network';
  return new ServerAway(`cannot reach the server ${server.base} (${causeOf(error)})${start}`, { cause: error });
}

/** Where the connection was there: whether the server has done what it was asked is not known. */
const UNANSWERED: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

export function lacksAnswer(error: unknown): boolean {
  if (!(error instanceof ServerAway) || !(error.cause instanceof Error)) return false;
  const { name, cause } = error.cause;
  return name === 'TimeoutError' || (cause instanceof Error && 'code' in cause && UNANSWERED.has(cause.code));
}

export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return printableText(String(error));
  if (error.name === 'TimeoutError') return 'it does not answer';
  const { cause } = error;
  if (cause instanceof AggregateError) {
    const first: unknown = cause.errors[0];
    if (first instanceof Error) return plainCauseOf(first);
  }
  return cause instanceof Error ? plainCauseOf(cause) : plainCauseOf(error);
}

const PLAIN_CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be looked up',
  ECONNRESET: 'the connection was cut',
  UND_ERR_SOCKET: 'the connection was cut',
  ETIMEDOUT: 'it does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
};

function plainCauseOf(error: Error): string {
  // What `fetch` says of ports that it never connects to.
  if (error.message === 'bad port') return 'its port is one of those that no http client connects to';
  const code = 'code' in error ? String(error.code) : '';
  return (
    (Object.hasOwn(PLAIN_CAUSES, code) ? PLAIN_CAUSES[code] : undefined) ??
    printableText(error.message.split('\n', 1)[0] ?? '')
  );
}

/** The error for 401 and for UNAUTHENTICATED. */
export function refused({ server, credentials }: ServerClient): ServerError {
  return credentials.token === undefined
    ? new ServerRefused(
        `the server ${server.base} asks for a token: set SERVICE_API_KEY or name a file with --token-file` +
          `, or log in with 'penstock login --server ${server.base}'` +
          (server.isLoopback
            ? ` (for a server on this machine its key is read from ${printableText(credentials.source)}, which is not there; --data-dir names another data folder)`
            : ''),
      )
    : new ServerRefused(
        `the server ${server.base} does not accept the token from ${printableText(credentials.source)}`,
      );
}

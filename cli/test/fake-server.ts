/** A server of one run, as far as `trigger` and `logs` see one: GraphQL answers and a scripted log stream. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export const RUN_ID = '0192f0c1-2b3c-7abc-8def-0123456789ab';

export interface SentEvent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export interface GraphqlRequest {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly authorization: string | undefined;
}

export interface GraphqlAnswer {
  readonly status?: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
}

export interface FakeServerScript {
  /** One for each log request, the last one for all after it. */
  readonly logs?: readonly ((request: IncomingMessage, response: ServerResponse) => void)[];
  readonly graphql?: (request: GraphqlRequest) => GraphqlAnswer | 'cut';
  /** Kept files, by their address. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of a login that is renewed. */
  readonly refresh?: (response: ServerResponse) => void;
}

export interface FakeServer {
  readonly url: string;
  readonly graphql: GraphqlRequest[];
  /** The `Last-Event-ID` of each log request. */
  readonly cursors: (string | undefined)[];
  readonly logAuthorizations: (string | undefined)[];
  /** The log has been asked for. */
  readonly streamed: Promise<void>;
}

export async function fakeServer(script: FakeServerScript): Promise<FakeServer> {
  const graphql: GraphqlRequest[] = [];
  const cursors: (string | undefined)[] = [];
  const { promise: streamed, resolve: tellStreamed } = Promise.withResolvers<void>();
  const logAuthorizations: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    if (request.url === `/pipeline/${RUN_ID}/logs`) {
      tellStreamed();
      cursors.push(request.headers['last-event-id'] as string | undefined);
      logAuthorizations.push(request.headers.authorization);
      const answers = script.logs ?? [];
      const answer = answers[Math.min(cursors.length, answers.length) - 1];
      if (answer === undefined) response.writeHead(404).end('{"error":"not_found","message":"no"}');
      else answer(request, response);
      return;
    }
    const file = script.files?.[request.url ?? ''];
    if (file !== undefined) {
      response.end(file);
      return;
    }
    if (request.url === '/auth/refresh' && script.refresh !== undefined) {
      script.refresh(response);
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { query, variables } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
        query: string;
        variables: Record<string, unknown>;
      };
      const seen = { query, variables, authorization: request.headers.authorization };
      graphql.push(seen);
      const answer = (script.graphql ?? knownRun)(seen);
      if (answer === 'cut') {
        response.destroy();
        return;
      }
      const { status = 200, body, headers } = answer;
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    graphql,
    cursors,
    logAuthorizations,
    streamed,
  };
}

const run = (status: string): unknown => ({ id: RUN_ID, status, stages: [{ name: 'build' }, { name: 'test' }] });

export function knownRun({ query }: GraphqlRequest, status = 'RUNNING'): GraphqlAnswer {
  return {
    body: {
      data: query.includes('triggerPipeline') ? { triggerPipeline: { run: run(status) } } : { run: run(status) },
    },
  };
}

export function frame({ id, event, data }: SentEvent): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** What a server says of a run that goes on, behind all that has happened so far. */
export const CAUGHT_UP = ': caught up\n\n';

export function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write('retry: 10\n\n');
}

/** A port where nobody listens: one that was free a moment ago. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Events with ids c1, c2, ... */
export function sentEvents(...events: Record<string, unknown>[]): SentEvent[] {
  return events.map((event, index) => ({
    id: `c${index + 1}`,
    event: String(event['type']),
    data: JSON.stringify({ ...event, timestamp: new Date(Date.UTC(2026, 0, 1) + index * 10).toISOString() }),
  }));
}

/** A server with a real cursor: continues after `Last-Event-ID`, and cuts each connection after so many bytes. */
export function resumable(
  events: readonly SentEvent[],
  cutAfterBytes: number,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const last = events.findIndex((event) => event.id === request.headers['last-event-id']);
    if (last === events.length - 1) {
      response.writeHead(204).end();
      return;
    }
    openStream(response);
    const rest = Buffer.from(
      events
        .slice(last + 1)
        .map(frame)
        .join(''),
    );
    if (rest.length <= cutAfterBytes) response.end(rest);
    else response.write(rest.subarray(0, cutAfterBytes), () => response.destroy());
  };
}

/** A server that answers every query with this, and the environment of a command that asks it. */
export async function answering(data: Record<string, unknown>): Promise<{
  readonly requests: readonly GraphqlRequest[];
  readonly env: Record<string, string>;
}> {
  const requests: GraphqlRequest[] = [];
  const { url } = await fakeServer({
    graphql: (request) => {
      requests.push(request);
      return { body: { data } };
    },
  });
  return { requests, env: { SERVICE_URL: url, SERVICE_API_KEY: 'secret-key' } };
}

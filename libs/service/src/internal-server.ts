/**
 * The internal port of a service process: `/health` says that the process lives, `/ready` that it can do its work,
 * `/metrics` what it counts. For probes inside the installation; nothing here is for clients.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { within } from '@penstock/async';
import { newIdHeader } from '@penstock/http';
import type { MetricsText } from '@penstock/telemetry/metrics';

export interface InternalServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface InternalServerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  /** Rejects, with the reason as its message, while the service cannot do its work. */
  ready(): Promise<void>;
  /** What the process counts, in the form that the header asks for. */
  metrics(accept: string | undefined): Promise<MetricsText>;
}

/** A probe that takes longer has its answer: not ready. */
const READY_MS_MAX = 2_000;
const REQUEST_MS_MAX = 10_000;

export async function startInternalServer(options: InternalServerOptions): Promise<InternalServer> {
  const server = createServer(
    { requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX },
    (request, response) => {
      const answer = (status: number, body: string, type = 'text/plain; charset=utf-8'): void => {
        response.writeHead(status, {
          ...newIdHeader(),
          'content-type': type,
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      };
      if (request.method !== 'GET' && request.method !== 'HEAD') answer(405, 'only GET\n');
      else if (request.url === '/health') answer(200, 'ok');
      else if (request.url === '/ready') void readiness(options.ready).then(({ status, body }) => answer(status, body));
      else if (request.url === '/metrics')
        options.metrics(request.headers.accept).then(
          ({ type, body }) => answer(200, body, type),
          () => answer(500, 'the figures could not be read\n'),
        );
      else answer(404, 'there are /health, /ready and /metrics\n');
    },
  );
  await listening(server, options.listen);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readiness(ready: () => Promise<void>): Promise<{ readonly status: number; readonly body: string }> {
  try {
    await within(READY_MS_MAX, ready(), () => {
      throw new Error('no answer');
    });
    return { status: 200, body: 'ready' };
  } catch (error) {
    return { status: 503, body: `not ready: ${error instanceof Error ? error.message : String(error)}\n` };
  }
}

function listening(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
}

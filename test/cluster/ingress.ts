/**
 * A small ingress: one address for all services of a cluster. It routes by path and spreads over what is alive, as far as
 * `/ready` of each says; bodies and event streams pass unbuffered in both directions.
 *
 * INGRESS-1. A request is sent at most once: only one whose connection was refused, so that no byte of it went out, goes to
 *     another of its service. Anything that fails later is answered 502, for it may have been done.
 * INGRESS-2. Every request has a connection of its own: one kept open could be closed by its other end at the very moment of its
 *     next use, and then nobody could say whether that request was read.
 */
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SECURITY_HEADERS } from '@penstock/http';
import type { ServiceName } from './service-process.ts';

export interface Backend {
  readonly name: string;
  readonly service: ServiceName;
  /** Of its API; undefined: it does not listen at present. */
  readonly apiUrl: string | undefined;
  probe(): Promise<'ready' | 'not ready' | 'silent'>;
}

export interface Ingress {
  readonly url: string;
  /** What the clients of this ingress have had to see. */
  readonly counts: IngressCounts;
  stop(): Promise<void>;
}

interface IngressCounts {
  requests: number;
  /** Refused connections that went to another backend. */
  repeated: number;
  /** Answered 502: a backend broke off. */
  broken: number;
  /** Answered 503: nobody was there. */
  unserved: number;
}

/** The first that fits; a service of which the cluster has none leaves its paths to the gateways. */
const ROUTES: readonly { readonly prefix: string; readonly service: ServiceName }[] = [
  { prefix: '/auth/', service: 'auth' },
  { prefix: '/.well-known/', service: 'auth' },
  { prefix: '/webhook', service: 'webhook-ingest' },
  { prefix: '/registry/', service: 'registry' },
  { prefix: '/', service: 'gateway' },
];
const PROBE_EVERY_MS = 250;
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const RETRY_AFTER_SECS = 1;

export async function startIngress(options: {
  readonly port: number;
  readonly backends: () => readonly Backend[];
}): Promise<Ingress> {
  const ingress = new PathIngress(options.backends);
  await ingress.listen(options.port);
  return ingress;
}

class PathIngress implements Ingress {
  url = '';
  readonly counts: IngressCounts = { requests: 0, repeated: 0, broken: 0, unserved: 0 };
  readonly #backends: () => readonly Backend[];
  readonly #ready = new Map<string, string>();
  readonly #probing = new Set<string>();
  readonly #agent = new Agent({ keepAlive: false });
  readonly #server: Server;
  #prober: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(backends: () => readonly Backend[]) {
    this.#backends = backends;
    this.#server = createServer((request, response) => this.#handle(request, response));
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1', 1024);
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.#prober = setInterval(() => this.#probeAll(), PROBE_EVERY_MS);
    this.#probeAll();
  }

  async stop(): Promise<void> {
    clearInterval(this.#prober);
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    this.#agent.destroy();
  }

  #probeAll(): void {
    for (const backend of this.#backends()) {
      if (this.#probing.has(backend.name)) continue;
      this.#probing.add(backend.name);
      const url = backend.apiUrl;
      void backend.probe().then((state) => {
        this.#probing.delete(backend.name);
        if (state === 'ready' && url !== undefined) this.#ready.set(backend.name, url);
        else this.#ready.delete(backend.name);
      });
    }
  }

  /** Those that are ready, each time another first; then the others that listen: better tried than refused. */
  #candidates(path: string): { readonly name: string; readonly url: string }[] {
    const all = this.#backends();
    const route = ROUTES.find(
      ({ prefix, service }) => path.startsWith(prefix) && all.some((backend) => backend.service === service),
    );
    const listening = all
      .filter((backend) => backend.service === (route?.service ?? 'gateway'))
      .flatMap(({ name, apiUrl }) => (apiUrl === undefined ? [] : [{ name, url: apiUrl }]));
    const ready = listening.filter(({ name, url }) => this.#ready.get(name) === url);
    const others = listening.filter((backend) => !ready.includes(backend));
    this.#turn += 1;
    const first = ready.length === 0 ? 0 : this.#turn % ready.length;
    return [...ready.slice(first), ...ready.slice(0, first), ...others];
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    this.counts.requests += 1;
    response.on('error', () => {});
    this.#forward(request, response, this.#candidates(request.url ?? '/'));
  }

  #forward(
    request: IncomingMessage,
    response: ServerResponse,
    [backend, ...others]: readonly { readonly name: string; readonly url: string }[],
  ): void {
    if (backend === undefined) {
      this.counts.unserved += 1;
      refuse(response, 503, { error: 'unavailable', message: 'No service is there to answer; try again.' });
      return;
    }
    const { hostname, port } = new URL(backend.url);
    const upstream = httpRequest({
      hostname,
      port,
      method: request.method,
      path: request.url,
      headers: headersTo(request),
      agent: this.#agent,
    });
    let answered = false;
    upstream.on('socket', (socket) => {
      socket.setNoDelay(true);
      // The body is read only once there is a connection, so it is whole for whoever gets it (INGRESS-1).
      socket.once('connect', () => request.pipe(upstream));
    });
    upstream.on('response', (incoming) => {
      answered = true;
      response.writeHead(incoming.statusCode ?? 502, headersFrom(incoming));
      // An event stream begins with its headers, before there is an event.
      response.flushHeaders();
      incoming.pipe(response);
      incoming.on('error', () => response.destroy());
      // A body that breaks off must not look complete.
      incoming.on('aborted', () => response.destroy());
    });
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (response.destroyed) return;
      if (answered) {
        response.destroy();
      } else if (error.code === 'ECONNREFUSED') {
        this.#ready.delete(backend.name);
        this.counts.repeated += 1;
        this.#forward(request, response, others);
      } else {
        this.#ready.delete(backend.name);
        this.counts.broken += 1;
        refuse(response, 502, {
          error: 'bad_gateway',
          message: 'The service broke off; what was asked may have been done.',
        });
      }
    });
    response.once('close', () => upstream.destroy());
  }
}

function headersTo(request: IncomingMessage): Record<string, string | string[]> {
  const headers = endToEnd(request);
  headers['x-forwarded-for'] = request.socket.remoteAddress ?? '';
  return headers;
}

function headersFrom(incoming: IncomingMessage): Record<string, string | string[]> {
  return endToEnd(incoming);
}

function endToEnd(message: IncomingMessage): Record<string, string | string[]> {
  const named = new Set((message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name)) headers[name] = value;
  }
  return headers;
}

function refuse(
  response: ServerResponse,
  status: number,
  body: { readonly error: string; readonly message: string },
): void {
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'retry-after': String(RETRY_AFTER_SECS),
    connection: 'close',
  });
  response.end(JSON.stringify(body));
}

/**
 * The HTTP server that every route stands on: headers on all responses, CORS, 404 and 405, error bodies, limits in size
 * and time. Routes are registered on what `buildServer` returns.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ERROR_CODES, RateLimited, ServiceError, Unauthenticated, Unavailable } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';
import { CorsPolicy } from './cors.ts';
import { JSON_TYPE, SECURITY_HEADERS } from './headers.ts';
import { countAnswers } from './answers.ts';
import { textOf } from './body-pieces.ts';
import { countedRequests } from './counted-request.ts';
import { parseJson } from './json.ts';
import { answerMalformed, rawResponse } from './malformed.ts';
import { rateLimiting, type RateLimits } from './rate-limits.ts';
import { idHeader, idOf, newIdHeader, serveByRequest } from './request-ids.ts';
import { KnownRoutes, rememberRoutes } from './routes.ts';
import { manyClientsAt, shareConnections } from './shared-connections.ts';
import { answerUnread } from './unread-body.ts';

export interface ServerOptions {
  readonly corsOrigins: readonly string[];
  readonly connectionsMax: number;
  readonly log: Log;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** Default: none. */
  readonly rateLimits?: RateLimits | undefined;
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` is believed; default none. */
  readonly trustProxy?: readonly string[] | undefined;
  /**
   * Refuses requests whose `Host` is no name of this machine (403 `bad_host`): a page elsewhere could otherwise reach a
   * server without secrets by making its own name resolve to 127.0.0.1. Default false.
   */
  readonly loopbackHostsOnly?: boolean | undefined;
  /** Milliseconds of a clock that never goes back, for the rate limits; default the process's own. */
  readonly monotonicNow?: (() => number) | undefined;
}

/** Of a route that sets no `bodyLimit`: GraphQL and auth bodies; a pipeline file is at most 512 KiB. */
export const BODY_BYTES_MAX = 1024 * 1024;
const HEADER_BYTES_MAX = 16 * 1024;
const HEADERS_MS_MAX = 10_000;
/** For the whole request, its body included: 1 MiB in this time is 35 KiB/s, slower than any working line. */
const REQUEST_MS_MAX = 30_000;
/** How often Node looks for requests over those limits. */
const TIME_LIMITS_CHECK_MS = 2_000;
/** Above the 60 s of common load balancers, so that it is they who close idle connections. */
const KEEP_ALIVE_MS = 65_000;
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])\.?(?::\d{1,5})?$/i;
const BAD_HOST =
  'This server is in development mode and answers to names of its own machine only (127.0.0.1, localhost). ' +
  'Set SERVICE_BASE_URL to the address that clients use, which makes it a production server.';

/**
 * Routes say `config: { tier }`, which rate limit they count for, and `bodyLimit` where it is not `BODY_BYTES_MAX`. Throws a
 * RangeError on a bad origin or proxy address.
 */
export function buildServer(options: ServerOptions): FastifyInstance {
  const cors = new CorsPolicy(options.corsOrigins);
  const routes = new KnownRoutes();
  let closing = false;

  const app = fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // In its stead `onRequest` below answers 503: Fastify's own answer would lack the headers.
    return503OnClosing: false,
    // What nobody has is 404 however long its name is; the router's own bound (100) would make it 414.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    genReqId: (request) => idOf(request as IncomingMessage),
    clientErrorHandler: (error, socket) => answerMalformed(error, socket),
    frameworkErrors: (error, request, reply) => {
      addHeaders(request, reply);
      return sendError(options.log, error, request, reply);
    },
    serverFactory: (handler, settings) => {
      // An import of it would load all of `fetch` too (docs/adr/0066-commands-put-together.md).
      const server = process.getBuiltinModule('node:http').createServer(
        {
          headersTimeout: HEADERS_MS_MAX,
          maxHeaderSize: HEADER_BYTES_MAX,
          connectionsCheckingInterval: TIME_LIMITS_CHECK_MS,
          // Checked in `onRequest`: Node's own answer would lack the headers.
          requireHostHeader: false,
          IncomingMessage: countedRequests(),
        },
        (request, response) => {
          request.answer = response;
          (handler as (request: IncomingMessage, response: ServerResponse) => void)(request, response);
        },
      );
      shareConnections(server, options.connectionsMax, manyClientsAt(options.trustProxy ?? []));
      configureServer(server, routes);
      server.keepAliveTimeout = settings['keepAliveTimeout'] as number;
      server.requestTimeout = settings['requestTimeout'] as number;
      return server;
    },
  });

  rememberRoutes(app, routes);
  const withinRateLimit = rateLimiting(app, {
    limits: options.rateLimits,
    trustProxy: options.trustProxy ?? [],
    log: options.log,
    now: options.monotonicNow ?? (() => performance.now()),
  });

  const addHeaders = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.headers(SECURITY_HEADERS).headers(idHeader(request));
    if (cors.enabled) reply.headers(cors.headersFor(request.headers.origin));
  };

  const answerUnrouted = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = pathOf(request);
    const allow = routes.allowOf(path);
    if (allow === null) {
      return reply
        .code(404)
        .send({ error: 'not_found', message: `There is nothing at ${path.slice(0, PATH_SHOWN_MAX)}.` });
    }
    reply.header('Allow', allow);
    if (request.method !== 'OPTIONS') {
      return reply.code(405).send({
        error: 'method_not_allowed',
        message: `This path does not take ${request.method}; it takes ${allow}.`,
      });
    }
    if (request.headers['access-control-request-method'] !== undefined) {
      reply.headers(cors.preflightHeadersFor(request.headers.origin) ?? {});
    }
    return reply.code(204).send();
  };

  app.addHook('onRoute', (route) => {
    routes.add({
      url: route.url,
      methods: [route.method].flat(),
      tier: route.config?.tier,
      bodyBytesMax: route.bodyLimit,
    });
  });
  serveByRequest(app);
  countAnswers(app, options.meter ?? noMeter, options.log);
  app.addHook('onRequest', (request, reply, done) => {
    addHeaders(request, reply);
    if (closing) {
      reply.header('Connection', 'close');
      done(new Unavailable('This server is shutting down.', { retryAfterSecs: 1 }));
      return;
    }
    const problem = hostProblem(request);
    if (problem !== null) {
      reply.code(400).header('Connection', 'close').send({ error: 'bad_request', message: problem });
    } else if (options.loopbackHostsOnly === true && !isLoopbackHost(request.headers.host)) {
      reply.code(403).header('Connection', 'close').send({ error: 'bad_host', message: BAD_HOST });
    } else if (request.is404) {
      // Before its body is looked at: that nobody wants.
      answerUnrouted(request, reply);
    } else if (withinRateLimit(request, reply)) {
      if (isEncoded(request)) refuseEncoded(request, reply);
      else done();
    }
  });
  if (cors.enabled) {
    // A route that says itself what its answer varies with takes nothing away by it.
    app.addHook('onSend', (_request, reply, payload, done) => {
      const vary = String(reply.getHeader('Vary') ?? '');
      if (!/(?:^|,)\s*origin\s*(?:,|$)/iu.test(vary)) reply.header('Vary', vary === '' ? 'Origin' : `${vary}, Origin`);
      done(null, payload);
    });
  }
  app.addHook('preClose', () => {
    closing = true;
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    const text = await textOf(request, payload);
    // Some clients name the type with every request, also where there is nothing to send: each route says what it lacks.
    return text === '' ? undefined : parseJson(text);
  });
  app.setErrorHandler((error, request, reply) => sendError(options.log, error, request, reply));
  app.setNotFoundHandler(answerUnrouted);
  return app;
}

const PATH_SHOWN_MAX = 200;

/** Without the query: a token in it must reach neither a log nor an answer. Of an address in full (`http://host/path`) its path. */
function pathOf(request: FastifyRequest): string {
  const { url } = request;
  const end = url.indexOf('?');
  const whole = end < 0 ? url : url.slice(0, end);
  return whole.startsWith('/') ? whole : whole.replace(/^https?:\/\/[^/]*(?=\/)/iu, '');
}

/** Of two `Host` headers one proxy may take the first and the next one the second. Null: it is as it has to be. */
function hostProblem(request: FastifyRequest): string | null {
  const { rawHeaders, httpVersion } = request.raw;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  // In a test without a socket there are no raw headers.
  if (hosts === 0 && httpVersion === '1.1' && request.headers.host === undefined) return 'The Host header is missing.';
  return hosts > 1 ? 'There is more than one Host header.' : null;
}

/** Of HTTP 1.0 a Host may be absent: a browser always sends one. */
function isLoopbackHost(host: string | undefined): boolean {
  return host === undefined || LOOPBACK_HOST.test(host);
}

/** A compressed body could unpack to any size, and no client of ours needs one. */
function isEncoded(request: FastifyRequest): boolean {
  const encoding = request.headers['content-encoding'];
  return encoding !== undefined && encoding.trim().toLowerCase() !== 'identity';
}

function refuseEncoded(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'Content-Type': JSON_TYPE, 'Accept-Encoding': 'identity' });
  answerUnread(
    request,
    reply,
    415,
    JSON.stringify({ error: 'unsupported_media_type', message: 'Send the body as it is, without a Content-Encoding.' }),
  );
}

function configureServer(server: Server, routes: KnownRoutes): void {
  // Node closes the connection without an answer where nobody listens.
  server.on('connect', ({ url = '' }: IncomingMessage, socket: Duplex) => {
    const allow = routes.allowOf(url);
    socket.on('error', () => socket.destroy());
    socket.end(
      allow === null
        ? rawResponse(404, { error: 'not_found', message: 'This server is no proxy.' })
        : rawResponse(
            405,
            { error: 'method_not_allowed', message: `This path does not take CONNECT; it takes ${allow}.` },
            { Allow: allow },
          ),
    );
  });
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    response.writeHead(417, { ...SECURITY_HEADERS, ...newIdHeader(), 'Content-Type': JSON_TYPE, Connection: 'close' });
    response.end(
      JSON.stringify({
        error: 'expectation_failed',
        message: 'The only Expect header that this server understands is 100-continue.',
      }),
    );
  });
}

function sendError(log: Log, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('Content-Type', JSON_TYPE);
  if (error instanceof ServiceError) {
    const { status, rest } = ERROR_CODES[error.code];
    if (error instanceof Unauthenticated) reply.header('WWW-Authenticate', 'Bearer');
    if (error instanceof Unavailable) reply.header('Retry-After', String(error.retryAfterSecs));
    else if (error instanceof RateLimited) reply.header('Retry-After', String(error.extensions['retryAfter'] ?? 1));
    const details = Object.keys(error.extensions).length === 0 ? {} : { details: error.extensions };
    return reply.code(status).send({ error: rest, message: error.message, ...details });
  }
  const { statusCode } = error as FastifyError;
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    const refusal = refusalOf(statusCode, request);
    // What is left of a refused body is not wanted.
    if (statusCode === 413 || statusCode === 415)
      return answerUnread(request, reply, statusCode, JSON.stringify(refusal));
    return reply.code(statusCode).send(refusal);
  }
  const { id } = request;
  log.error({ requestId: id, method: request.method, path: pathOf(request), err: error }, 'a request failed');
  return reply
    .code(500)
    .send({ error: 'internal_server_error', message: `Something went wrong here; ask the operator about ${id}.` });
}

function refusalOf(status: number, request: FastifyRequest): { readonly error: string; readonly message: string } {
  switch (status) {
    case 413:
      return {
        error: 'payload_too_large',
        message: `A body may have at most ${request.routeOptions.bodyLimit} bytes here.`,
      };
    case 415:
      return {
        error: 'unsupported_media_type',
        message: 'Send the body as JSON, with "Content-Type: application/json".',
      };
    default:
      return { error: 'bad_request', message: 'The body is incomplete, or the address is malformed.' };
  }
}

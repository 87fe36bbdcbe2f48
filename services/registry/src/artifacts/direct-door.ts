/**
 * The port by which large contents come and go without the broker: for runners and gateways in the network of the services. It owns
 * the tickets that were given and not used yet, and the connections.
 *
 *  STRAIGHT-1 A ticket is for one content in one direction, of an attempt, or a gateway, whose right was looked at when it was given, and
 *     opens one connection at a time, none after the one that has asked for it; who has none fails at the handshake.
 *  STRAIGHT-2 There are at most TICKETS_MAX tickets, for TICKET_MS_MAX or as long as their connections stand, and CONNECTIONS_MAX
 *     connections; beyond, bytes go by the broker.
 *  STRAIGHT-3 One tenant has at most half of the connections, those that its tickets may open included, whatever is asked on them, or
 *     nothing; so have all readers of gateways together.
 */
import { constants, randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { isIP, isIPv4, type AddressInfo, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { TLSSocket } from 'node:tls';
import { Counts } from '@penstock/async';
import { letGo, LINE_IDLE_MS_MAX, LINE_KEY_BYTES, LINE_TLS, type DirectContent } from '@penstock/artifacts';
import { ServiceError } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';

export interface DirectDoorOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly log: Log;
  readonly meter: Meter;
  /** Until a connection is open, and again until something is asked on it. Default: 10 s. */
  readonly headMsMax?: number | undefined;
}

/** Reads the bytes to their end, and stores them. */
export type Storing = (bytes: AsyncIterable<Uint8Array>) => Promise<void>;

interface Ticket {
  /** STRAIGHT-3 */
  readonly holder: string;
  readonly key: Buffer;
  readonly givenAt: number;
  readonly method: 'PUT' | 'GET';
  /** The last that was made with it. */
  line: TLSSocket | undefined;
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const TICKETS_MAX = 256;
const TICKET_MS_MAX = 30_000;
const CONNECTIONS_MAX = 128;
const CONNECTIONS_OF_ONE_MAX = CONNECTIONS_MAX / 2;
const HEAD_MS_MAX = 10_000;
/** Node looks every 30 s otherwise, and who asks for nothing holds a connection for as long in addition. */
const LOOK_MS_MAX = 1_000;
/** What is still sent of a content that was refused is read and dropped, so that the refusal is heard. */
const REFUSED_MS_MAX = 5_000;
const STORED = 204;
const HERE = 200;
const REFUSED = 409;

export class DirectDoor {
  readonly #server: Server;
  readonly #log: Log;
  readonly #meter: Meter;
  readonly #tickets = new Map<string, Ticket>();
  /** STRAIGHT-3: tickets, and connections that were opened with one. */
  readonly #held = new Counts();
  readonly #idsOf = new WeakMap<TLSSocket, string>();
  #host = '';

  private constructor({ log, meter, headMsMax = HEAD_MS_MAX }: DirectDoorOptions) {
    this.#log = log;
    this.#meter = meter;
    this.#server = process.getBuiltinModule('node:https').createServer(
      {
        ...LINE_TLS,
        // Else whoever has had a connection opens others with its session, and no ticket is looked at.
        secureOptions: constants.SSL_OP_NO_TICKET,
        pskCallback: (socket, id) => this.#keyFor(socket, id),
        handshakeTimeout: headMsMax,
        headersTimeout: headMsMax,
        connectionsCheckingInterval: Math.min(headMsMax, LOOK_MS_MAX),
        // A large one on a slow line may take as long as it moves.
        requestTimeout: 0,
        keepAlive: false,
      },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.setTimeout(LINE_IDLE_MS_MAX, (socket) => socket.destroy());
  }

  static async open(options: DirectDoorOptions): Promise<DirectDoor> {
    const door = new DirectDoor(options);
    await door.#listen(options.listen);
    return door;
  }

  /** For a tenant. Undefined: there is no room at the moment. */
  toPut(tenant: string, sizeBytes: number, store: Storing): DirectContent | undefined {
    return this.#give(tenant, 'PUT', async (request, response) => {
      if (Number(request.headers['content-length']) !== sizeBytes) return response.writeHead(REFUSED).end();
      await store(givenBack(request));
      this.#meter.add('penstock_contents_bytes_total', { direction: 'in' }, sizeBytes);
      return response.writeHead(STORED).end();
    });
  }

  /** See `toPut`; '': for a gateway. `read` is called when it is asked for. */
  toGet(tenant: string, sizeBytes: number, read: () => AsyncIterable<Uint8Array>): DirectContent | undefined {
    return this.#give(tenant, 'GET', async ({ socket }, response) => {
      response.writeHead(HERE, { 'content-length': sizeBytes });
      for await (const piece of read()) {
        if (socket.destroyed) return;
        const { length } = piece;
        await written(socket, response, piece);
        this.#meter.add('penstock_contents_bytes_total', { direction: 'out' }, length);
        letGo(piece);
      }
      response.end();
    });
  }

  async close(): Promise<void> {
    this.#tickets.clear();
    await new Promise<void>((closed) => {
      this.#server.close(() => closed());
      this.#server.closeAllConnections();
    });
  }

  async #listen({ host, port }: DirectDoorOptions['listen']): Promise<void> {
    await new Promise<void>((listening, failed) => {
      this.#server.once('error', failed);
      this.#server.listen(port, host, listening);
    });
    this.#host = reachableHost(host);
    this.#server.on('error', (error) => this.#log.warn({ err: error }, 'the port for large contents met an error'));
    this.#log.info({ host: this.#host, port: this.#port }, 'large contents come and go by this port');
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #give(
    holder: string,
    method: Ticket['method'],
    answer: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>,
  ): DirectContent | undefined {
    const now = performance.now();
    for (const [id, { givenAt, holder: holderOfIt, line }] of this.#tickets) {
      if (now - givenAt < TICKET_MS_MAX) break;
      if (line?.destroyed === false) continue;
      this.#tickets.delete(id);
      this.#held.add(holderOfIt, -1);
    }
    if (!this.#server.listening || this.#tickets.size >= TICKETS_MAX) return undefined;
    if (this.#held.of(holder) >= CONNECTIONS_OF_ONE_MAX) return undefined;
    this.#held.add(holder, 1);
    const key = randomBytes(LINE_KEY_BYTES);
    const ticket = randomUUID();
    this.#tickets.set(ticket, {
      holder,
      key,
      givenAt: now,
      method,
      line: undefined,
      answer: async (request, response) => void (await answer(request, response)),
    });
    return { host: this.#host, port: this.#port, ticket, key: key.toString('base64') };
  }

  #keyFor(socket: TLSSocket, id: string): Buffer | null {
    const ticket = this.#tickets.get(id);
    if (ticket === undefined) return null;
    // Of one connection it may be asked again; another has the ticket after one that has failed.
    if (ticket.line !== socket && ticket.line?.destroyed === false) return null;
    ticket.line = socket;
    this.#idsOf.set(socket, id);
    return ticket.key;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const socket = request.socket as TLSSocket;
    const id = this.#idsOf.get(socket) ?? '';
    const ticket = this.#tickets.get(id);
    response.setHeader('connection', 'close');
    response.on('error', () => {});
    if (ticket?.line !== socket || request.method !== ticket.method) {
      response.writeHead(REFUSED).end();
      return;
    }
    this.#tickets.delete(id);
    // Not the response's, which may end before its connection does.
    socket.once('close', () => this.#held.add(ticket.holder, -1));
    try {
      await ticket.answer(request, response);
    } catch (error) {
      if (!(error instanceof ServiceError) && !request.destroyed)
        this.#log.warn({ err: error }, 'a large content could not be moved');
      refuse(request, response, error);
    }
  }
}

function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body =
    error instanceof ServiceError ? { code: error.code, message: error.message, extensions: error.extensions } : {};
  response.writeHead(REFUSED, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  request.resume();
  const over = setTimeout(() => request.destroy(), REFUSED_MS_MAX);
  request.once('close', () => clearTimeout(over));
}

/** Or never will be: what waits behind another response is called back by nobody when the connection ends. */
function written(socket: Socket, response: ServerResponse, piece: Uint8Array): Promise<void> {
  return new Promise((done) => {
    const over = (): void => {
      socket.off('close', over);
      done();
    };
    socket.once('close', over);
    if (socket.closed) over();
    else response.write(piece, over);
  });
}

/** Whoever stores them has copied a piece when it asks for the next one. */
async function* givenBack(request: IncomingMessage): AsyncGenerator<Uint8Array, void> {
  for await (const piece of request as AsyncIterable<Uint8Array>) {
    yield piece;
    letGo(piece);
  }
}

/** Of a port that listens everywhere: the first address that others have. */
function reachableHost(host: string): string {
  if (isIP(host) === 0 || (host !== '0.0.0.0' && host !== '::')) return host;
  const others = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => address);
  return others.find((address) => isIPv4(address)) ?? others[0] ?? '127.0.0.1';
}

/**
 * Leads runners of the fleet from the server's own port to the broker's WebSocket listener, which is on loopback: so that a runner
 * needs one address, and TLS ends in one place. It owns the connections under way.
 *
 *  SOCKET-1 Nobody is led there without a ticket (P37); what comes then is the broker's to judge.
 *  SOCKET-3 What a tenant's own runners send goes on as fast as the tenant may, and no faster (`tenant-flow.ts`).
 *  SOCKET-4 What the broker sends to one of those counts as the tenant's bytes, and waits in bounded room until it is read (`unread-answers.ts`).
 *  SOCKET-2 Any other request to upgrade is answered as if it had not asked to.
 */
import type { IncomingMessage, Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { bearerTokenOf, FLEET_PATHS, readFleetTicket } from '@penstock/identity';
import { newIdHeader } from '@penstock/http';
import type { FastifyInstance } from 'fastify';
import { TenantFlow } from './tenant-flow.ts';
import { UnreadAnswers, type UnreadConnection } from './unread-answers.ts';

export interface FleetSocketOptions {
  /** Of the broker's listener. */
  readonly port: number;
  readonly jwtSecret: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly flow?: TenantFlow | undefined;
  readonly unread?: UnreadAnswers | undefined;
}

const SOCKETS_MAX = 2_000;
/** One that reconnects may have its last one still open. */
const SOCKETS_PER_RUNNER_MAX = 4;
/** The broker is on this machine. */
const CONNECT_MS_MAX = 5_000;
const PASSED_ON = ['sec-websocket-key', 'sec-websocket-version'] as const;
/** Such as compression: what is counted has to be read. */
const EXTENSIONS = 'sec-websocket-extensions';

export function addFleetSocket(app: FastifyInstance, options: FleetSocketOptions): void {
  const { port, jwtSecret, now, flow = new TenantFlow(), unread = new UnreadAnswers() } = options;
  const sockets = new Set<Duplex>();
  const ofRunner = new Map<string, number>();
  const server = app.server as Server & { shouldUpgradeCallback?: (request: IncomingMessage) => boolean };
  // SOCKET-2.
  server.shouldUpgradeCallback = (request) =>
    pathOf(request) === FLEET_PATHS.socket && request.headers.upgrade?.toLowerCase() === 'websocket';
  server.on('upgrade', (request: IncomingMessage, client: Socket, head: Buffer) => {
    client.on('error', () => client.destroy());
    const ticket = readFleetTicket(jwtSecret, bearerTokenOf(request.headers.authorization) ?? '', now());
    if (ticket === null) return refuse(client, 401, 'Unauthorized');
    const { runner, tenant } = ticket;
    const open = ofRunner.get(runner) ?? 0;
    if (sockets.size >= SOCKETS_MAX || open >= SOCKETS_PER_RUNNER_MAX)
      return refuse(client, 503, 'Service Unavailable');
    const way = tenant === undefined ? undefined : flow.connection(tenant);
    if (way === null) return refuse(client, 503, 'Service Unavailable');
    sockets.add(client);
    ofRunner.set(runner, open + 1);
    client.once('close', () => {
      sockets.delete(client);
      const left = (ofRunner.get(runner) ?? 1) - 1;
      if (left === 0) ofRunner.delete(runner);
      else ofRunner.set(runner, left);
    });
    const passedOn = tenant === undefined ? [...PASSED_ON, EXTENSIONS] : PASSED_ON;
    const back = tenant === undefined ? undefined : backTo(client, tenant, flow, unread);
    lead({ client, head, way, back, headers: headersOf(request, passedOn), port });
  });
  app.addHook('preClose', () => {
    for (const socket of sockets) socket.destroy();
  });
}

interface Led {
  readonly client: Socket;
  /** What came with the request. */
  readonly head: Buffer;
  /** Through which the client's bytes go; undefined: straight. */
  readonly way: Duplex | undefined;
  /** Takes what the broker sends; undefined: it goes to the client straight. */
  readonly back: ((bytes: Buffer) => void) | undefined;
  readonly headers: readonly string[];
  readonly port: number;
}

/** SOCKET-4. */
function backTo(client: Socket, tenant: string, flow: TenantFlow, unread: UnreadAnswers): (bytes: Buffer) => void {
  const connection: UnreadConnection = unread.connection(tenant, () => client.destroy());
  client.once('close', () => connection.close());
  return (bytes) => {
    flow.answered(tenant, bytes.length);
    if (connection.sent(bytes.length)) client.write(bytes, () => connection.read(bytes.length));
  };
}

function lead({ client, head, way, back, headers, port }: Led): void {
  client.setTimeout(0);
  client.setNoDelay(true);
  client.setKeepAlive(true, 30_000);
  const broker = connect({ host: '127.0.0.1', port, noDelay: true });
  broker.setTimeout(CONNECT_MS_MAX, () => broker.destroy(new Error('the broker did not answer')));
  broker.once('connect', () => {
    broker.setTimeout(0);
    broker.write(
      [
        'GET / HTTP/1.1',
        `Host: 127.0.0.1:${port}`,
        'Upgrade: websocket',
        'Connection: Upgrade',
        ...headers,
        '',
        '',
      ].join('\r\n'),
    );
    (way ?? broker).write(head);
    if (way === undefined) client.pipe(broker);
    else client.pipe(way).pipe(broker);
    if (back === undefined) broker.pipe(client);
    else broker.on('data', back);
  });
  way?.on('error', () => client.destroy());
  let isLed = false;
  broker.once('data', () => (isLed = true));
  broker.on('error', () => {
    if (isLed) client.destroy();
    else refuse(client, 502, 'Bad Gateway');
  });
  broker.once('close', () => client.destroySoon());
  client.once('close', () => {
    way?.destroy();
    broker.destroy();
  });
}

function headersOf(request: IncomingMessage, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const value = request.headers[name];
    return typeof value === 'string' ? [`${name}: ${value}`] : [];
  });
}

function refuse(client: Socket, status: number, text: string): void {
  const id = Object.entries(newIdHeader()).map(([name, value]) => `${name}: ${value}\r\n`);
  client.end(`HTTP/1.1 ${status} ${text}\r\n${id.join('')}Connection: close\r\nContent-Length: 0\r\n\r\n`);
}

function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

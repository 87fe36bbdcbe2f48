/** P37: what the machines of tenants are answered: whose bytes it is, and what becomes of one that does not read. Real sockets. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { signFleetTicket } from '@penstock/identity';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addFleetSocket } from '../src/api/fleet-socket.ts';
import { TenantFlow } from '../src/api/tenant-flow.ts';
import { UnreadAnswers } from '../src/api/unread-answers.ts';

const JWT_SECRET = 'a secret of sufficient length for a test';
const MEBIBYTE = 1024 * 1024;
const GREETING = 'HTTP/1.1 101 Switching Protocols\r\n\r\n';
/** More than two kernels keep for a connection. */
const MUCH = 64 * MEBIBYTE;

let broker: Server;
let app: FastifyInstance;
let arrived: (connection: Socket) => void;
const clients: Socket[] = [];

beforeEach(async () => {
  broker = createServer((connection) => {
    connection.on('error', () => {});
    connection.once('data', () => {
      connection.write(GREETING);
      arrived(connection);
    });
  }).listen(0, '127.0.0.1');
  await once(broker, 'listening');
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await app.close();
  broker.close();
});

async function listen(more: { flow?: TenantFlow; unread?: UnreadAnswers }): Promise<void> {
  app = Fastify();
  const { port } = broker.address() as AddressInfo;
  addFleetSocket(app, { port, jwtSecret: JWT_SECRET, now: Date.now, ...more });
  await app.listen({ port: 0, host: '127.0.0.1' });
}

let runners = 0;
/** A machine that is led to the broker: its side, and the broker's. */
async function machine(tenant?: string): Promise<{ readonly client: Socket; readonly there: Socket }> {
  const opened = new Promise<Socket>((resolve) => (arrived = resolve));
  runners += 1;
  const runner = `fr_${String(runners).padStart(32, '0')}`;
  const whose = tenant === undefined ? { runner } : { runner, tenant };
  const ticket = signFleetTicket(JWT_SECRET, whose, Date.now() + 60_000);
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  clients.push(client);
  client.write(
    [
      ...['GET /runners/socket HTTP/1.1', 'Host: here', 'Upgrade: websocket', 'Connection: Upgrade'],
      ...['Sec-WebSocket-Key: a', 'Sec-WebSocket-Version: 13', `Authorization: Bearer ${ticket}`, '', ''],
    ].join('\r\n'),
  );
  return { client, there: await opened };
}

/** `once` would reject where it is cut rudely. */
const closed = (socket: Socket): Promise<'closed'> =>
  new Promise((resolve) => socket.once('close', () => resolve('closed')));

/** Until so many bytes have come. */
async function reads(client: Socket, bytes: number): Promise<void> {
  let left = bytes;
  client.resume();
  while (left > 0) {
    const [piece] = (await once(client, 'data')) as [Buffer];
    left -= piece.length;
  }
  expect(left).toBe(0);
}

describe('what the broker sends to a machine', { timeout: 60_000 }, () => {
  it("counts as its tenant's bytes, and everybody's machines' as nobody's (SOCKET-4)", async () => {
    const flow = new TenantFlow({ operationsPerSecond: Infinity, bytesPerSecond: 1_024, burstSeconds: 2 }, () => 0);
    await listen({ flow });
    const ada = await machine('user/ada');
    ada.there.write('x'.repeat(10_000));
    await reads(ada.client, GREETING.length + 10_000);
    const waits = Math.ceil(((GREETING.length + 10_000) / 1_024 - 2) * 1_000);
    expect(flow.take('user/ada', 0, 0)).toBe(waits);
    const shared = await machine();
    shared.there.write('x'.repeat(10_000));
    await reads(shared.client, GREETING.length + 10_000);
    expect(flow.take('user/ada', 0, 0)).toBe(waits);
    expect(flow.take('user/bob', 0, 0)).toBe(0);
  });

  it('is read at once, and one that reads none of it is cut when its tenant has no more room; others read on (UNREAD-1)', async () => {
    await listen({ unread: new UnreadAnswers({ shared: 8 * MEBIBYTE, own: 64 * 1024 }) });
    const [mute, sister, bob] = [await machine('user/ada'), await machine('user/ada'), await machine('user/bob')];
    const cut = closed(mute.there);
    mute.there.write(Buffer.alloc(MUCH));
    expect(await cut).toBe('closed');
    for (const { client, there } of [sister, bob]) {
      there.write(Buffer.alloc(MEBIBYTE));
      await reads(client, GREETING.length + MEBIBYTE);
    }
    // However much it is, to whoever reads what was asked for.
    for (let part = 0; part < 50; part += 1) {
      sister.there.write(Buffer.alloc(MEBIBYTE));
      await reads(sister.client, MEBIBYTE);
    }
  });

  it('waits so long for a machine that reads nothing, and then the connection is cut (UNREAD-2)', async () => {
    await listen({ unread: new UnreadAnswers({ shared: 8 * MUCH, own: MUCH }, 100) });
    const { there } = await machine('user/ada');
    const cut = closed(there);
    there.write(Buffer.alloc(MUCH));
    expect(await cut).toBe('closed');
  });

  it('that has gone ends the connection to the broker, and the broker’s end the machine’s, once it has read what was sent', async () => {
    await listen({});
    const [gone, ended] = [await machine('user/ada'), await machine('user/ada')];
    const heard = closed(gone.there);
    gone.client.destroy();
    expect(await heard).toBe('closed');
    const over = once(ended.client, 'end');
    ended.there.end('x'.repeat(100_000));
    await reads(ended.client, GREETING.length + 100_000);
    await over;
  });
});

describe('unread answers', () => {
  it('of a tenant cost the connection that holds most, and nobody of another tenant', () => {
    const unread = new UnreadAnswers({ shared: 100_000, own: 1_000 });
    const cut: string[] = [];
    const opened = (tenant: string, name: string) => unread.connection(tenant, () => cut.push(name));
    const [most, less, other] = [opened('ada', 'most'), opened('ada', 'less'), opened('bob', 'other')];
    expect([most.sent(12_000), less.sent(3_000), other.sent(9_000)]).toEqual([true, true, true]);
    expect(less.sent(4_000)).toBe(true);
    expect(cut).toEqual(['most']);
    expect(most.sent(1)).toBe(false);
    most.close();
    // What has been read counts no more, and what was cut neither.
    less.read(3_000);
    less.read(4_000);
    for (let round = 0; round < 50; round += 1) {
      expect(less.sent(10_000)).toBe(true);
      less.read(10_000);
    }
    expect(less.sent(90_000)).toBe(false);
    expect(cut).toEqual(['most', 'less']);
    other.close();
  });
});

/** Who may have how many of a server's connections. */
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { manyClientsAt, shareConnections } from '../src/shared-connections.ts';

const [ONE, ANOTHER, PROXY] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
const MAX = 200;

let server: Server;
let sockets: Socket[];

beforeEach(async () => {
  sockets = [];
  server = createServer();
  shareConnections(server, MAX, (peer) => peer === PROXY);
  server.on('connection', (socket) => {
    if (!socket.destroyed) socket.on('error', () => {}).write('hello');
  });
  await once(server.listen(0, ONE), 'listening');
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** Whether it is let in: the other end says so, or hangs up. */
async function isLetIn(from: string): Promise<boolean> {
  const socket = connect({ port: (server.address() as AddressInfo).port, host: ONE, localAddress: from });
  socket.on('error', () => {});
  sockets.push(socket);
  return await Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
}

async function letIn(from: string): Promise<number> {
  let count = 0;
  while (await isLetIn(from)) count += 1;
  return count;
}

describe('connections', () => {
  it('CONNECTIONS-1: of one client are a share: another is let in, and so is it when it has closed some', async () => {
    const first = await letIn(ONE);
    expect(first).toBe(MAX / 5);
    expect(await isLetIn(ANOTHER)).toBe(true);
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(() => isLetIn(ONE)).toBe(true);
  });

  it('CONNECTIONS-1: clients by IPv4 are told apart where the server listens on IPv6 too', () => {
    const both = createServer();
    shareConnections(both, MAX, () => false);
    const letIn = (peer: string): boolean => {
      const destroy = vi.fn<() => void>();
      both.emit('connection', Object.assign(new EventEmitter(), { remoteAddress: peer, destroy }));
      return destroy.mock.calls.length === 0;
    };
    for (let count = 0; count < MAX / 5; count += 1) expect(letIn('::ffff:192.0.2.1')).toBe(true);
    expect([letIn('::ffff:192.0.2.1'), letIn('192.0.2.1')]).toEqual([false, false]);
    expect(letIn('::ffff:192.0.2.2')).toBe(true);
  });

  it('CONNECTIONS-1: of a trusted proxy are as many as the server has', async () => {
    expect(await letIn(PROXY)).toBe(MAX);
  });

  it('of this machine, and of what is listed, are of many clients', () => {
    const isMany = manyClientsAt(['10.0.0.0/8']);
    expect(
      ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3'].filter(isMany),
    ).toHaveLength(6);
    expect(['192.0.2.1', '2001:db8::1', '', '::ffff:192.0.2.1'].filter(isMany)).toEqual([]);
  });
});

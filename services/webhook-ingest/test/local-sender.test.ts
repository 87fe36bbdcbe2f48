/** Who sends a request over loopback, by the kernel's table of connections. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { maySendAs, sendersIn } from '../src/intake/local-sender.ts';

const own = process.getuid?.() ?? 0;
const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

async function connected(host: string): Promise<{ readonly sender: Socket; readonly taken: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  await once(server.listen(0, host), 'listening');
  const sender = connect({ port: (server.address() as AddressInfo).port, host, allowHalfOpen: true });
  const [taken] = (await once(server, 'connection')) as [Socket];
  server.close();
  opened.push(sender, taken);
  return { sender, taken };
}

describe.runIf(process.platform === 'linux')('the sender of a request over loopback', () => {
  it.each(['127.0.0.1', '::1'])('is known by its user (%s)', async (host) => {
    const { taken } = await connected(host);
    expect(await maySendAs({ first: own, last: own }, taken)).toBe(true);
    expect(await maySendAs({ first: own + 1, last: own + 9 }, taken)).toBe(false);
  });

  it('that has hung up may be anybody', async () => {
    const { sender, taken } = await connected('127.0.0.1');
    taken.resume();
    sender.destroy();
    await once(taken, 'end');
    expect(await maySendAs({ first: own + 1, last: own + 9 }, taken)).toBe(true);
  });
});

it('the table is read by both ports', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:1F90 0100007F:A431 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1',
    '   1: 0100007F:A431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 200007        0 2 1 0 20 4 30 10 -1',
    '   2: 0100007F:A431 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     5        0 3 1 0 20 4 30 10 -1',
  ].join('\n');
  expect(sendersIn(table, 0xa431, 8080)).toEqual([{ state: '01', uid: 200_007 }]);
});

import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CannotListen, checkListenAddress, listenProblem } from '../src/listen-check.ts';

let other: Server;
let port: number;
beforeEach(async () => {
  other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  port = (other.address() as AddressInfo).port;
});
afterEach(() => {
  other.close();
});

it('an address that another program uses is refused with the remedy, before anything is started', async () => {
  const refused = checkListenAddress({ host: '127.0.0.1', port });
  await expect(refused).rejects.toThrow(CannotListen);
  await expect(refused).rejects.toThrow(
    `cannot listen on 127.0.0.1:${port}: another program is using it; name another address with --listen HOST:PORT`,
  );
});

it('an address that another program has taken since the check is told in the same words, also by another thread', () => {
  const said = (error: unknown) => (listenProblem(error, { host: '127.0.0.1', port }) as Error).message;
  const known = Object.assign(new Error('listen EADDRINUSE: address already in use'), { code: 'EADDRINUSE' });
  for (const error of [known, structuredClone(known)])
    expect(said(error)).toBe(
      `cannot listen on 127.0.0.1:${port}: another program is using it; name another address with --listen HOST:PORT`,
    );
  expect(said(new Error('something else'))).toBe('something else');
});

it('an address of another machine is refused by its name', async () => {
  await expect(checkListenAddress({ host: '192.0.2.1', port: 0 })).rejects.toThrow('this machine has no such address');
});

it('a free address is left free', async () => {
  other.close();
  await once(other, 'close');
  await checkListenAddress({ host: '127.0.0.1', port });
  await expect(checkListenAddress({ host: '127.0.0.1', port })).resolves.toBeUndefined();
});

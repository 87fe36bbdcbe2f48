import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { writeStatus } from '../src/statuses/host-api.ts';

const PIECE = Buffer.alloc(64 * 1024, 'x');
const SENT_MAX = 64 * 1024 * 1024;

it('of an answer that goes on and on no more is read than is looked at', async () => {
  let sent = 0;
  const server = createServer((_request, response) => {
    const send = (): void => {
      while (sent < SENT_MAX && !response.destroyed) {
        sent += PIECE.length;
        if (!response.write(PIECE)) return void response.once('drain', send);
      }
      response.end();
    };
    response.writeHead(502);
    send();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const target = { provider: 'git_host_a', repository: 'acme/demo', commit: 'a', ref: 'r', context: 'c' } as const;
  const run = { runId: 'run', tenant: 'service' };
  const answer = await writeStatus({ apiUrl, token: 't' }, { ...target, ...run }, 'pending', 'https://ci.example');
  expect(answer).toMatchObject({ kind: 'later', why: `502 ${'x'.repeat(200)}` });
  expect(sent).toBeLessThan(SENT_MAX);
  server.closeAllConnections();
  server.close();
});

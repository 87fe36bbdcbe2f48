/** What a runner of the fleet is told by a server that does not attach it (P37). */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { newKeySeed } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Attachment } from '../src/fleet/attachment.ts';

let server: Server;
let answer: { readonly status: number; readonly body: string };
beforeEach(async () => {
  server = createServer((_request, response) => response.writeHead(answer.status).end(answer.body)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
});
afterEach(() => void server.close());

function attaching(): { readonly attachment: Attachment; readonly url: string } {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const attachment = new Attachment({
    server: url,
    token: 'token',
    seed: newKeySeed(),
    name: 'rack 4',
    log: silentLogger(),
  });
  return { attachment, url };
}

describe('a runner that is not attached', () => {
  it.each([
    [404, '{"message":"no such address"}'],
    [200, '<html>another server</html>'],
  ])('by an answer of %d is told that this may be no server of ours', async (status, body) => {
    answer = { status, body };
    const { attachment, url } = attaching();
    const error = { tag: 'AttachRefused', message: `${url} lets no runners in: is it a Penstock server?` };
    await expect(attachment.attach()).rejects.toMatchObject(error);
    expect(await attachment.refused).toMatchObject(error);
  });

  it('by one that says why is told just that', async () => {
    answer = { status: 403, body: '{"message":"The token was revoked."}' };
    await expect(attaching().attachment.attach()).rejects.toMatchObject({
      tag: 'AttachRefused',
      message: 'The token was revoked.',
    });
  });

  it('by one that may say otherwise later tries again (ATTACH-2)', async () => {
    answer = { status: 503, body: '{"message":"Not yet."}' };
    await expect(attaching().attachment.attach()).rejects.toMatchObject({ tag: 'AttachUnavailable' });
  });
});

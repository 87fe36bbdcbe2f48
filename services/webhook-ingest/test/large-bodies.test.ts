/** Bodies on their way, of clients who send slowly or much, and what is left for others. */
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { githubSignature } from './repository.ts';
import { makeWorld, type RunningIngest, type World } from './world.ts';

const MIB = 1024 * 1024;
const SECRET = 'server';
/** Two clients of this machine. */
const [ONE, ANOTHER] = ['127.0.0.1', '127.0.0.2'];

let world: World;
let ingest: RunningIngest;

beforeAll(async () => {
  world = await makeWorld();
  ingest = await world.ingest({ secrets: { git_host_a: SECRET } });
  await ingest.app.listen({ host: ONE, port: 0 });
});
afterAll(() => world.close());

/** Resolves when the server has seen the request; the rest of its body is still to come. */
async function begin(from: string, announced: number, signature = 'sha256=0'): Promise<Socket> {
  const { port } = ingest.app.server.address() as AddressInfo;
  const socket = connect({ port, host: ONE, localAddress: from });
  socket.on('error', () => {});
  const seen = once(ingest.app.server, 'request');
  socket.write(
    `POST /webhook HTTP/1.1\r\nHost: localhost\r\nX-GitHub-Event: push\r\nX-Hub-Signature-256: ${signature}\r\nContent-Length: ${announced}\r\n\r\n`,
  );
  await seen;
  return socket;
}

/** Of a signed body that says nothing. 400: it was read. */
async function statusOf(from: string, bytes: number): Promise<number> {
  const body = Buffer.alloc(bytes, 'x');
  const socket = await begin(from, bytes, githubSignature(body, SECRET));
  socket.write(body);
  return await answerOn(socket);
}

async function answerOn(socket: Socket): Promise<number> {
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return Number(head.toString('latin1').split(' ')[1]);
}

async function end(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  const left = (): Promise<number> =>
    new Promise((resolve) => ingest.app.server.getConnections((_error, count) => resolve(count)));
  while ((await left()) > 0) await new Promise((resolve) => setImmediate(resolve));
}

it('bodies that are announced and do not come hold nothing', async () => {
  const slow: Socket[] = [];
  for (let count = 0; count < 30; count += 1) {
    const socket = await begin(ONE, 25 * MIB);
    socket.write('x');
    slow.push(socket);
  }
  expect(await statusOf(ONE, MIB)).toBe(400);
  expect(await statusOf(ANOTHER, 25 * MIB)).toBe(400);
  await end(slow);
});

it('a client that leaves large bodies half sent holds a share: another is read, and it is itself when they are gone', async () => {
  const half: Socket[] = [];
  let refused: number | undefined;
  while (refused === undefined) {
    const socket = await begin(ONE, 25 * MIB);
    half.push(socket);
    const answered = answerOn(socket).then((status) => (refused = status));
    socket.write(Buffer.alloc(24 * MIB));
    // Whichever comes first: all of it was taken, or it is refused.
    await Promise.race([answered, socket.writableNeedDrain ? once(socket, 'drain') : undefined]);
    answered.catch(() => {});
  }
  expect([refused, half.length]).toEqual([503, 3]);
  expect(await statusOf(ANOTHER, 25 * MIB)).toBe(400);
  await end(half);
  expect(await statusOf(ONE, 25 * MIB)).toBe(400);
});

/** A server of a release that the driver itself no longer speaks to: what its operator is told. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { BSON } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { openMongoStore, StoreIncompatible } from '../src/index.ts';

const OP_REPLY = 1;
const OP_MSG = 2013;
const HELLO = { ok: 1, isWritablePrimary: true, ismaster: true, helloOk: true, minWireVersion: 0, maxWireVersion: 6 };

let server: Server;
beforeAll(async () => {
  server = createServer((socket) => {
    let received = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      while (received.length >= 16 && received.length >= received.readInt32LE(0)) {
        const length = received.readInt32LE(0);
        socket.write(replyTo(received.readInt32LE(4), received.readInt32LE(12)));
        received = received.subarray(length);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.close();
});

/** In the form that was asked in: the first hello comes in the old one. */
function replyTo(requestId: number, opCode: number): Buffer {
  const document = Buffer.from(
    BSON.serialize({ ...HELLO, maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000 }),
  );
  const head = opCode === OP_MSG ? Buffer.alloc(5) : Buffer.alloc(20);
  if (opCode !== OP_MSG) head.writeInt32LE(1, 16);
  const message = Buffer.concat([Buffer.alloc(16), head, document]);
  message.writeInt32LE(message.length, 0);
  message.writeInt32LE(requestId, 8);
  message.writeInt32LE(opCode === OP_MSG ? OP_MSG : OP_REPLY, 12);
  return message;
}

it('a server that is too old for the driver is told as such, with its version and the remedy, not as no answer', async () => {
  const { port } = server.address() as AddressInfo;
  const opened = openMongoStore({ url: `mongodb://127.0.0.1:${port}/penstock`, collections: [], deadlineMs: 2_000 });
  await expect(opened).rejects.toThrow(StoreIncompatible);
  await expect(opened).rejects.toThrow(/reports maximum wire version 6.*; Penstock needs MongoDB 7\.0 or newer/);
});

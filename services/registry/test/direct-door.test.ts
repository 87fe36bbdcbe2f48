/** Large contents on connections of their own: the registry's port, and the way to it that runners and gateways have. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { once } from 'node:events';
import { connect as connectSecurely, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DirectWay, DirectWayBroken, LINE_TLS, type DirectContent } from '@penstock/artifacts';
import { BadUserInput } from '@penstock/errors';
import { silentLog } from '@penstock/telemetry/log';
import { noMeter } from '@penstock/telemetry/metrics';
import { DirectDoor } from '../src/artifacts/direct-door.ts';

const never = new AbortController().signal;
const MEGABYTE = 1024 ** 2;
const listen = { host: '127.0.0.1', port: 0 };

let door: DirectDoor;
let way: DirectWay;
let shut: Error[];

beforeEach(async () => {
  shut = [];
  door = await DirectDoor.open({ listen, log: silentLog, meter: noMeter });
  way = new DirectWay((error) => shut.push(error));
});
afterEach(async () => {
  vi.useRealTimers();
  await door.close();
});

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

async function all(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const piece of pieces) copies.push(Buffer.from(piece));
  return Buffer.concat(copies);
}

/** A connection that has asked for nothing. */
function lineFor({ host, port, ticket, key }: DirectContent, session?: Buffer): TLSSocket {
  const line = connectSecurely({
    ...LINE_TLS,
    host,
    port,
    ...(session === undefined
      ? { pskCallback: () => ({ identity: ticket, psk: Buffer.from(key, 'base64') }) }
      : { session }),
    checkServerIdentity: () => undefined,
  });
  line.on('error', () => {});
  return line;
}

function asked(method: string, length = 0): string {
  return `${method} /content HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`;
}

/** With room for it. */
function given(content: DirectContent | undefined): DirectContent {
  if (content === undefined) throw new Error('no ticket was given');
  return content;
}

describe('a content on a connection of its own', () => {
  it('comes in and goes out whole', async () => {
    const bytes = randomBytes(3 * MEGABYTE + 7);
    let stored: Uint8Array = new Uint8Array();
    const put = door.toPut('a', bytes.length, async (pieces) => void (stored = await all(pieces)));
    await way.send(given(put), bytes.length, piecesOf(bytes), never);
    expect(bytes.equals(stored)).toBe(true);
    const get = door.toGet('a', bytes.length, () => piecesOf(Uint8Array.from(bytes)));
    expect((await all(way.read(given(get)))).equals(bytes)).toBe(true);
    expect(shut).toEqual([]);
  });

  it('is refused in the words of who stores it, however much of it is still to be sent', async () => {
    const put = door.toPut('a', 64 * MEGABYTE, async (pieces) => {
      for await (const piece of pieces) if (piece.length > 0) throw new BadUserInput('not like this');
    });
    const endless = async function* (): AsyncGenerator<Uint8Array, void> {
      for (let at = 0; at < 64; at += 1) yield new Uint8Array(MEGABYTE);
    };
    await expect(way.send(given(put), 64 * MEGABYTE, endless(), never)).rejects.toThrow(
      new BadUserInput('not like this'),
    );
  });

  it('is stored by nobody where its sender ends early', async () => {
    const ended = Promise.withResolvers<unknown>();
    const put = door.toPut('a', MEGABYTE, async (pieces) => {
      await all(pieces).then(() => ended.resolve('stored'), ended.resolve);
    });
    await expect(way.send(given(put), MEGABYTE, piecesOf(randomBytes(1_000)), never)).rejects.toThrow('changed');
    expect(await ended.promise).toBeInstanceOf(Error);
  });

  it('waits in no memory: who stores it slowly has it sent slowly', async () => {
    const pieceBytes = 4 * MEGABYTE;
    const pieces = 48;
    const aheadMax = 64 * MEGABYTE;
    let sent = 0;
    let received = 0;
    let ahead = 0;
    const put = door.toPut('a', pieces * pieceBytes, async (bytes) => {
      for await (const piece of bytes) {
        received += piece.length;
        ahead = Math.max(ahead, sent - received);
        // Whoever sends has every chance to run ahead.
        await new Promise((turned) => setImmediate(turned));
      }
    });
    const piece = new Uint8Array(pieceBytes);
    const counted = async function* (): AsyncGenerator<Uint8Array, void> {
      for (let at = 0; at < pieces; at += 1) {
        sent += pieceBytes;
        yield piece;
      }
    };
    await way.send(given(put), pieces * pieceBytes, counted(), never);
    expect(received).toBe(pieces * pieceBytes);
    expect(ahead).toBeLessThan(aheadMax);
  }, 60_000);
});

describe('a ticket', () => {
  const bytes = randomBytes(200_000);
  const toGet = (): DirectContent => given(door.toGet('a', bytes.length, () => piecesOf(Uint8Array.from(bytes))));

  it('opens one connection only', async () => {
    const ticket = toGet();
    expect((await all(way.read(ticket))).equals(bytes)).toBe(true);
    await expect(all(way.read(ticket))).rejects.toThrow(DirectWayBroken);
  });

  it('is of no use with another key, nor in the other direction', async () => {
    const key = randomBytes(32).toString('base64');
    await expect(all(way.read({ ...toGet(), key }))).rejects.toThrow(DirectWayBroken);
    expect(way.isOpen).toBe(false);
    let stored = false;
    const put = door.toPut('a', bytes.length, async () => void (stored = true));
    await expect(all(new DirectWay().read(given(put)))).rejects.toThrow(DirectWayBroken);
    await expect(new DirectWay().send(toGet(), bytes.length, piecesOf(bytes), never)).rejects.toThrow(DirectWayBroken);
    expect(stored).toBe(false);
  });

  it('is not given where too many have one', () => {
    const tickets = Array.from({ length: 300 }, (_, at) => door.toGet(`tenant ${at % 8}`, 1, () => piecesOf(bytes)));
    expect(tickets.filter((each) => each !== undefined)).toHaveLength(256);
  });

  it('is not given to a tenant that has half of the connections, or could; to others it is', async () => {
    const ofOne = Array.from({ length: 65 }, () => door.toGet('a', bytes.length, () => piecesOf(bytes)));
    expect(ofOne.filter((each) => each !== undefined)).toHaveLength(64);
    expect(door.toPut('a', 1, async () => {})).toBeUndefined();
    expect(door.toPut('b', 1, async () => {})).toBeDefined();
    // One that has come to its end is no longer held.
    expect((await all(way.read(given(ofOne[0])))).equals(bytes)).toBe(true);
    await expect.poll(() => door.toPut('a', 1, async () => {}), { timeout: 20_000 }).toBeDefined();
  });

  it('leaves no content open, and is given again, where its connection ended before the answer had its turn', async () => {
    const ended = Promise.withResolvers<void>();
    const read = async function* (): AsyncGenerator<Uint8Array, void> {
      try {
        for (let at = 0; at < 8; at += 1) yield randomBytes(1_000);
      } finally {
        ended.resolve();
      }
    };
    const [first] = Array.from({ length: 64 }, () => door.toGet('a', 8_000, read));
    expect(door.toGet('a', 1, read)).toBeUndefined();
    const line = lineFor(given(first));
    await once(line, 'secureConnect');
    line.resume();
    // In one packet: the refusal of the first ends the connection, and the second waits behind it.
    line.write(asked('PUT') + asked('GET'));
    await ended.promise;
    expect(door.toGet('a', 1, read)).toBeDefined();
    expect(door.toGet('a', 1, read)).toBeUndefined();
  });

  it('opens one connection at a time, whatever is asked on it', async () => {
    const ticket = toGet();
    const line = lineFor(ticket);
    const [session] = (await once(line, 'session')) as [Buffer];
    await expect(once(lineFor(ticket), 'secureConnect')).rejects.toThrow('handshake failure');
    // Nor is there another by what the first has left.
    await expect(once(lineFor(ticket, session), 'secureConnect')).rejects.toThrow('handshake failure');
    line.write(asked('GET'));
    expect((await all(line)).includes(bytes)).toBe(true);
  });

  it('has its connection ended where nothing is asked on it', async () => {
    await door.close();
    door = await DirectDoor.open({ listen, log: silentLog, meter: noMeter, headMsMax: 1_000 });
    const line = lineFor(given(door.toGet('a', 1, () => piecesOf(randomBytes(1)))));
    line.resume();
    // One that is not even made has an end of its own.
    await once(line, 'secureConnect');
    await once(line, 'close');
    expect(line.destroyed).toBe(true);
    // Node looks after 30 s by itself.
  }, 20_000);

  it('is held as long as its connection stands, though nothing is asked on it', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const give = (): DirectContent | undefined => door.toGet('a', 1, () => piecesOf(bytes));
    const [first] = Array.from({ length: 64 }, give);
    const line = lineFor(given(first));
    await once(line, 'secureConnect');
    vi.advanceTimersByTime(30_000);
    expect(Array.from({ length: 64 }, give).filter((each) => each !== undefined)).toHaveLength(63);
    line.destroy();
    await expect.poll(give).toBeDefined();
  });
});

it('a stranger without a ticket gets no answer', async () => {
  const { port } = given(door.toGet('a', 1, () => piecesOf(randomBytes(1))));
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET /content HTTP/1.1\r\nhost: x\r\n\r\n');
  const answer: Buffer[] = [];
  socket.on('data', (data) => answer.push(Buffer.from(data)));
  await once(socket, 'close');
  expect(Buffer.concat(answer).toString('latin1')).not.toContain('HTTP/1.1');
});

it('where nobody is reached the way is shut for a while, and says so once', async () => {
  const ticket = given(door.toGet('a', 1, () => piecesOf(randomBytes(1))));
  await door.close();
  await expect(way.send(ticket, MEGABYTE, piecesOf(randomBytes(MEGABYTE)), never)).rejects.toThrow(DirectWayBroken);
  expect(way.isOpen).toBe(false);
  way = new DirectWay((error) => shut.push(error));
  shut = [];
  await expect(all(way.read(ticket))).rejects.toThrow(DirectWayBroken);
  expect(way.isOpen).toBe(false);
  expect(shut).toHaveLength(1);
  door = await DirectDoor.open({ listen, log: silentLog, meter: noMeter });
});

import { EventEmitter, once } from 'node:events';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { countedRequests } from '../src/counted-request.ts';

const CRUMB = Buffer.from(' ');
const PIECES_FREE = 10_000;

/** A connection that tells what is done with it. */
class FakeSocket extends EventEmitter {
  readonly done: string[] = [];
  readonly readable = true;
  writable = true;
  destroyed = false;

  end(text: string): void {
    this.done.push(`end ${text.slice(0, 12)}`);
    this.writable = false;
  }

  destroy(): void {
    this.done.push('destroy');
    this.destroyed = true;
  }

  resume(): void {
    this.done.push('resume');
  }
}

/** A request whose crumbs are no longer free. */
function begun(answer: (socket: Socket) => { readonly socket: Socket | null; readonly headersSent: boolean }) {
  const fake = new FakeSocket();
  const socket = fake as unknown as Socket;
  const request = new (countedRequests())(socket);
  request.answer = answer(socket);
  for (let count = 0; count < PIECES_FREE; count += 1) request.push(CRUMB);
  expect(fake.done).toEqual([]);
  return { request, done: fake.done };
}

describe('a body in crumbs', () => {
  it('is answered once, and nothing of it comes behind that, its end neither', () => {
    const { request, done } = begun((socket) => ({ socket, headersSent: false }));
    const { readableLength } = request;
    for (const piece of [CRUMB, CRUMB, Buffer.alloc(PIECES_FREE * 100), null]) expect(request.push(piece)).toBe(false);
    expect(done).toEqual(['end HTTP/1.1 400']);
    expect(request.readableLength).toBe(readableLength);
    // Who waits for more has the connection read no further.
    request.read();
    expect(done).toHaveLength(1);
  });

  it('is not answered behind an answer that has begun, or where another is due', () => {
    for (const answer of [
      (socket: Socket) => ({ socket, headersSent: true }),
      // Of a request before it on the connection.
      () => ({ socket: null, headersSent: false }),
    ]) {
      const { request, done } = begun(answer);
      for (let count = 0; count < 3; count += 1) expect(request.push(CRUMB)).toBe(false);
      expect(done).toEqual(['destroy']);
    }
  });
});

describe('COUNTED-1: a body that nobody has asked for', () => {
  it('is held in few pieces however short they come, and given whole to who asks, with its end', async () => {
    const request = new (countedRequests())(new Socket());
    for (let count = 0; count < PIECES_FREE; count += 1) request.push(CRUMB);
    request.push(Buffer.alloc(2 * 1024 * 1024, 'x'));
    request.push(Buffer.from('tail'));
    request.push(null);
    expect(request.readableEnded).toBe(false);
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    await once(request, 'end');
    expect(Buffer.concat(pieces).toString()).toBe(`${' '.repeat(PIECES_FREE)}${'x'.repeat(2 * 1024 * 1024)}tail`);
    expect(pieces.length).toBeLessThan(10);
  });

  it('holds up its connection from the same length on, and comes on when somebody asks', async () => {
    const request = new (countedRequests())(new Socket());
    const whole = request.readableHighWaterMark;
    expect([
      request.push(Buffer.alloc(whole - 2)),
      request.push(Buffer.from('1')),
      request.push(Buffer.from('2')),
    ]).toEqual([true, true, false]);
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    // Who asks is answered in the next turn: what comes until then stands behind what came before.
    request.push(Buffer.from('3'));
    await once(request, 'resume');
    request.push(Buffer.from('4'));
    request.push(null);
    await once(request, 'end');
    expect(
      Buffer.concat(pieces)
        .subarray(whole - 2)
        .toString(),
    ).toBe('1234');
  });
});

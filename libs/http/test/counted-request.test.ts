import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
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

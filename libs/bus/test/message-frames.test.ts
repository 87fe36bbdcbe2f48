import { Parser, type ParserEvent } from '@nats-io/transport-node';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LARGE_BYTES, MessageFrames } from '../src/wire/message-frames.ts';

/** What the client understands of these frames. */
function understood(frames: readonly Uint8Array[]): string[] {
  const heard: string[] = [];
  const parser = new Parser({
    push: (event: ParserEvent) =>
      void heard.push(JSON.stringify([event.kind, event.msg, Buffer.from(event.data ?? []).toString('base64')])),
  });
  for (const frame of frames) parser.parse(frame);
  return heard;
}

/** The pieces come in one buffer, which each of them is written over. */
function cut(stream: Buffer, ends: readonly number[]): Uint8Array[] {
  const frames: Uint8Array[] = [];
  const cutter = new MessageFrames((frame) => frames.push(frame));
  const shared = Buffer.alloc(stream.length);
  let from = 0;
  for (const end of [...ends, stream.length]) {
    stream.copy(shared, 0, from, end);
    cutter.push(shared.subarray(0, end - from));
    from = end;
  }
  return frames;
}

const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom('', '\r\n', 'MSG a 1 5\r\n', 'PING\r\n').map((text) => Buffer.from(text)),
  fc.integer({ min: LARGE_BYTES - 60, max: LARGE_BYTES + 60 }).map((length) => Buffer.alloc(length, 'MSG a 1 5\r\n')),
);
const messages = fc.oneof(
  fc
    .constantFrom('PING\r\n', 'PONG\r\n', '+OK\r\n', "-ERR 'no 5'\r\n", 'INFO {"port":4222}\r\n')
    .map((text) => Buffer.from(text)),
  fc
    .tuple(payloads, fc.boolean())
    .map(([payload, hasReply]) =>
      Buffer.concat([
        Buffer.from(`MSG a.b 7 ${hasReply ? 'inbox.1 ' : ''}${payload.length}\r\n`),
        payload,
        Buffer.from('\r\n'),
      ]),
    ),
  payloads.map((payload) => {
    const head = Buffer.from('NATS/1.0\r\nNats-Sequence: 5\r\n\r\n');
    const line = `HMSG a.b 7 ${head.length} ${head.length + payload.length}\r\n`;
    return Buffer.concat([Buffer.from(line), head, payload, Buffer.from('\r\n')]);
  }),
);

describe('what the broker sends', () => {
  it('FRAMES-1: is understood as it was sent, wherever its pieces end, though their memory is used again', () => {
    fc.assert(
      fc.property(
        fc.array(messages, { minLength: 1, maxLength: 12 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true })),
        (sent, cuts) => {
          const stream = Buffer.concat(sent);
          const ends = cuts.map((cutAt) => Math.floor(cutAt * stream.length)).toSorted((one, other) => one - other);
          const frames = cut(stream, ends);
          expect(understood(frames)).toEqual(understood([stream]));
          expect(Buffer.concat(frames).equals(stream)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('FRAMES-1: is understood byte by byte', () => {
    const stream = Buffer.from('MSG a 1 5\r\nhello\r\nPING\r\nHMSG a 1 12 12\r\nNATS/1.0\r\n\r\n\r\n');
    const frames = cut(
      stream,
      Array.from({ length: stream.length }, (_, at) => at),
    );
    expect(understood(frames)).toEqual(understood([stream]));
  });

  it('FRAMES-2: a large message has its memory for itself, and small ones share what they take', () => {
    const small = Buffer.from('MSG a 1 5\r\nhello\r\n');
    const large = Buffer.concat([
      Buffer.from(`MSG a 1 ${LARGE_BYTES}\r\n`),
      Buffer.alloc(LARGE_BYTES),
      Buffer.from('\r\n'),
    ]);
    const frames = cut(Buffer.concat([small, small, large, small]), []);
    expect(frames.map(({ length }) => length)).toEqual([2 * small.length, large.length, small.length]);
    expect(frames[1]?.buffer.byteLength).toBe(large.length);
  });

  it('a line without an end ends the connection, not the memory', () => {
    const cutter = new MessageFrames(() => {});
    const endless = Buffer.alloc(64 * 1024, 'x');
    expect(() => {
      for (let sent = 0; sent < 100; sent += 1) cutter.push(endless);
    }).toThrow('a line without an end');
  });
});

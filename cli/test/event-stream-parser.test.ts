import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamParser, type StreamMessage } from '../src/server/event-stream-parser.ts';

function parse(pieces: readonly Uint8Array[]): {
  messages: (StreamMessage & { id: string })[];
  comments: number;
  retryMs: number | undefined;
} {
  const messages: (StreamMessage & { id: string })[] = [];
  let comments = 0;
  const parser = new EventStreamParser({
    message: (message) => messages.push({ ...message, id: parser.lastEventId }),
    comment: () => {
      comments += 1;
    },
  });
  for (const piece of pieces) parser.push(piece);
  return { messages, comments, retryMs: parser.retryMs };
}

const bytes = (text: string): Uint8Array[] => [Buffer.from(text)];

describe('the reading of text/event-stream', () => {
  it.each([
    ['data: x\n\n', [{ event: 'message', data: 'x', id: '' }]],
    ['\ufeffdata: x\n\n', [{ event: 'message', data: 'x', id: '' }]],
    ['event: e\ndata: a\ndata: b\nid: 7\n\n', [{ event: 'e', data: 'a\nb', id: '7' }]],
    [
      'data:x\r\n\r\ndata:y\r\rdata: z\n\n',
      [
        { event: 'message', data: 'x', id: '' },
        { event: 'message', data: 'y', id: '' },
        { event: 'message', data: 'z', id: '' },
      ],
    ],
    [
      'data\n\ndata\ndata\n\ndata:',
      [
        { event: 'message', data: '', id: '' },
        { event: 'message', data: '\n', id: '' },
      ],
    ],
    ['id: 1\n\ndata: x\n\n', [{ event: 'message', data: 'x', id: '1' }]],
    ['id: a\0b\ndata: x\n\n', [{ event: 'message', data: 'x', id: '' }]],
    [
      'id: 1\ndata: x\n\nid\ndata: y\n\n',
      [
        { event: 'message', data: 'x', id: '1' },
        { event: 'message', data: 'y', id: '' },
      ],
    ],
    ['event: gone\n\ndata: x\n\n', [{ event: 'message', data: 'x', id: '' }]],
    ['data:  two spaces\nunknown: field\n\n', [{ event: 'message', data: ' two spaces', id: '' }]],
  ])('of %j follows the HTML standard', (text, expected) => {
    expect(parse(bytes(text)).messages).toEqual(expected);
  });

  it('counts comments and hears `retry`', () => {
    expect(parse(bytes(': ping\n\nretry: 250\nretry: soon\n\n'))).toEqual({ messages: [], comments: 1, retryMs: 250 });
  });

  it('takes the id of a message only when the message is complete', () => {
    const parser = new EventStreamParser({ message: () => {}, comment: () => {} });
    parser.push(Buffer.from('id: 1\ndata: x\n\nid: 2\ndata: y\n'));
    expect(parser.lastEventId).toBe('1');
  });

  it('refuses a message that never ends instead of growing', () => {
    const parser = new EventStreamParser({ message: () => {}, comment: () => {} });
    const piece = Buffer.alloc(1024 * 1024, 'x');
    expect(() => {
      for (let count = 0; count < 6; count += 1) parser.push(piece);
    }).toThrow('without an end');
  });

  it('does not depend on where the bytes are cut', () => {
    const token = fc.constantFrom(
      'data: ü😀',
      'data:',
      'id: 1',
      'id: 22',
      'event: e',
      ': c',
      'retry: 9',
      '\n',
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      'x',
      '\0',
      ':',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 60 }), fc.array(fc.nat(300), { maxLength: 12 }), (tokens, cuts) => {
        const whole = Buffer.from(tokens.join(''));
        const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length])].toSorted(
          (left, right) => left - right,
        );
        const pieces = places.slice(1).map((end, index) => whole.subarray(places[index], end));
        expect(parse(pieces)).toEqual(parse([whole]));
      }),
      { numRuns: 500 },
    );
  });
});

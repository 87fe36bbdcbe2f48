import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BadLine } from '../src/errors.ts';
import { FrameReader, type LineFrame } from '../src/line/frames.ts';

const blocks = (stream: string, first: number, pieces: readonly Buffer[]): Buffer => {
  const sizes = pieces.map((piece, index) => `${piece.length} ${stream}.${first + index}\n`).join('');
  const total = pieces.length > 1 ? `${Buffer.concat(pieces).length} total\n` : '';
  return Buffer.concat([Buffer.from(`blocks ${stream} ${first} ${pieces.length}\n${sizes}${total}data\n`), ...pieces]);
};

describe('frames of a line', () => {
  it('are the same however the bytes are cut', () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((array) => Buffer.from(array));
    const frame = fc.tuple(
      fc.constantFrom('out', 'err'),
      fc.nat(1_000),
      fc.array(bytes, { minLength: 1, maxLength: 4 }),
    );
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        (all, cuts) => {
          const text = Buffer.concat([
            ...all.map(([stream, first, pieces]) => blocks(stream, first, pieces)),
            Buffer.from('masks 7\nsecret\noutputs 4\na=1\ndone 3 exit\n'),
          ]);
          const reader = new FrameReader();
          const frames: LineFrame[] = [];
          for (let at = 0, turn = 0; at < text.length; turn += 1) {
            const end = at + (cuts[turn % cuts.length] ?? 1);
            frames.push(...reader.push(text.subarray(at, end)));
            at = end;
          }
          expect(frames).toEqual([
            ...all.map(([stream, first, pieces]) => ({
              kind: 'blocks',
              stream,
              first,
              count: pieces.length,
              bytes: Buffer.concat(pieces),
            })),
            { kind: 'masks', bytes: Buffer.from('secret\n') },
            { kind: 'outputs', bytes: Buffer.from('a=1\n') },
            { kind: 'done', code: 3, cause: 'exit' },
          ]);
        },
      ),
    );
  });

  it.each([
    'nonsense\n',
    'done 3 surely\n',
    'done 300 exit\n',
    'blocks out 0 17\n',
    'blocks mid 0 1\n',
    'blocks out 0 1\n65537 out.0\ndata\n',
    'blocks out 0 2\n1 out.0\ndata\n',
    'outputs 999999999\n',
    'masks 65538\n',
    'x'.repeat(300),
  ])('%s is refused, and costs nothing', (text) => {
    expect(() => new FrameReader().push(Buffer.from(text))).toThrow(BadLine);
  });

  it.each([
    'masks 1\nxmasks 1\nxmasks',
    'outputs 1\nxoutputs 1\nx',
    'outputs 1\nxmasks 1\nx',
    'done 0 exit\ndone 0 exit\n',
    'done 0 exit\nblocks out 0 1\n',
  ])('%j is refused: no line says so twice', (text) => {
    expect(() => new FrameReader().push(Buffer.from(text))).toThrow(BadLine);
  });

  // An array of as many pieces, from which each was taken as the first, took minutes and hundreds of megabytes.
  it('may come byte by byte, also the largest', () => {
    const pieces = Array.from({ length: 16 }, (_none, at) => Buffer.alloc(64 * 1024, at));
    const bytes = blocks('out', 0, pieces);
    const reader = new FrameReader();
    const frames: LineFrame[] = [];
    for (let at = 0; at < bytes.length; at += 1) frames.push(...reader.push(bytes.subarray(at, at + 1)));
    expect(frames).toHaveLength(1);
    expect(frames[0]?.kind === 'blocks' && frames[0].bytes.equals(Buffer.concat(pieces))).toBe(true);
  });
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OutputTail } from '../src/output/output-tail.ts';

const BYTES_MAX = 300_000;
const line = fc.record({
  stream: fc.constantFrom('stdout', 'stderr' as const),
  // Around the sizes at which memory is taken and used again.
  length: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(4_095, 4_096, 60_000, 65_536)),
});

it('keeps the last whole lines that fit, each as it was and in its order, however memory is used again', () => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 400 }), (lines) => {
      const tail = new OutputTail(BYTES_MAX);
      const kept: { stream: string; text: string }[] = [];
      let bytes = 0;
      for (const [index, { stream, length }] of lines.entries()) {
        const text = `${String(index % 10).repeat(length)}\n`;
        tail.push(stream, Buffer.from(text));
        kept.push({ stream, text });
        bytes += text.length;
        while (bytes > BYTES_MAX) bytes -= kept.shift()?.text.length ?? 0;
      }
      const pieces = tail.take().map((piece) => ({ stream: piece.stream, text: Buffer.from(piece.lines).toString() }));
      expect(pieces.map(({ text }) => text).join('')).toBe(kept.map(({ text }) => text).join(''));
      const streams = pieces.flatMap(({ stream, text }) =>
        text
          .split('\n')
          .slice(1)
          .map(() => stream),
      );
      expect(streams).toEqual(kept.map(({ stream }) => stream));
      expect(tail.take()).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

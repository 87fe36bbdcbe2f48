import { describe, expect, it } from 'vitest';
import { decodePart, encodePart, encodePartAside } from '../src/part-codec.ts';

const texts = ['', 'short', 'é'.repeat(2_000), 'a story, '.repeat(100_000)];

describe('parts as an adapter keeps them', () => {
  it.each(texts.map((text) => [text.length, text] as const))(
    'a text of %i characters is read as it was',
    async (_length, text) => {
      expect(decodePart(encodePart(text))).toBe(text);
      expect(await encodePartAside(text)).toEqual(encodePart(text));
    },
  );

  it('a large text is deflated on another thread: this one goes on meanwhile', async () => {
    let turns = 0;
    const count = setInterval(() => (turns += 1), 0);
    await encodePartAside(Array.from({ length: 1_000_000 }, (_, index) => index * 7_919).join(' '));
    clearInterval(count);
    expect(turns).toBeGreaterThan(0);
  });

  it('bytes stay bytes', async () => {
    const bytes = Uint8Array.from([1, 2, 3]);
    expect(decodePart(await encodePartAside(bytes))).toEqual(bytes);
  });
});

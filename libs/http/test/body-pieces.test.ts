import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { piecesOf } from '../src/body-pieces.ts';

const MIB = 1024 * 1024;

function cut(body: Buffer, lengthAt: (index: number) => number): Readable {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += pieces.at(-1)?.length ?? 0) {
    // In memory of its own, as it comes from a connection.
    const piece = Buffer.allocUnsafeSlow(Math.min(lengthAt(pieces.length), body.length - at));
    body.copy(piece, 0, at);
    pieces.push(piece);
  }
  return Readable.from(pieces);
}

/** What it takes of the memory, each object for 400 bytes. */
function heldBy(pieces: readonly Buffer[]): number {
  let bytes = 400 * pieces.length;
  for (const memory of new Set(pieces.map(({ buffer }) => buffer))) bytes += memory.byteLength;
  return bytes;
}

describe('the pieces of a body', () => {
  it.each<[string, number, (index: number) => number]>([
    ['a byte each', 10_000, () => 1],
    ['32 bytes each', 100_000 * 32, () => 32],
    ['each of another length', 4 * MIB, (index) => 1 + ((index * 7_919) % 9_000)],
    ['long and short by turns', 4 * MIB, (index) => (index % 2 === 0 ? 4_097 : 1)],
    ['two bytes', 2, () => 1],
  ])('PIECES-1: %s, hold what they say', async (_name, bytes, lengthAt) => {
    const body = randomBytes(bytes);
    const pieces = await piecesOf(cut(body, lengthAt), MIB * 16);
    expect(Buffer.concat(pieces).equals(body)).toBe(true);
    expect(heldBy(pieces)).toBeLessThan(bytes * 1.25 + Math.min(bytes, 64 * 1024) + 5 * 1024);
  });

  it('one alone is kept as it came, and none is copied that is long', async () => {
    const [short, long] = [Buffer.from('short'), Buffer.alloc(5_000)];
    expect((await piecesOf(Readable.from([short]), MIB))[0]).toBe(short);
    expect((await piecesOf(Readable.from([short, long]), MIB))[1]).toBe(long);
    expect(await piecesOf(Readable.from([]), MIB)).toEqual([]);
  });
});

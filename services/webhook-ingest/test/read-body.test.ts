/** A body as it comes in, and what it leaves of the event loop. */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readBody } from '../src/intake/read-body.ts';
import { hmacOf, sha256Of, smallHmacOf } from '../src/providers/digest.ts';
import { LARGE_BYTES } from '../src/providers/large-work.ts';

const MIB = 1024 * 1024;

/** How many turns the loop makes meanwhile. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let [turns, isOver] = [0, false];
  const result = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    turns += 1;
  }
  return { turns, result: await result };
}

describe('the body of a request', () => {
  it('comes out as it went in, in memory of its own, put together in pieces', async () => {
    const body = randomBytes(8 * MIB + 5);
    const stream = new PassThrough({ highWaterMark: 16 * MIB });
    for (let at = 0; at < body.length; at += 65_536) stream.write(body.subarray(at, at + 65_536));
    stream.end();
    const { result, turns } = await turnsDuring(readBody(stream, 16 * MIB));
    expect(result.equals(body)).toBe(true);
    expect(result.buffer.byteLength).toBe(body.length);
    expect(turns).toBeGreaterThan(8);
    expect(await readBody(Readable.from([]), MIB)).toHaveLength(0);
  });

  it('comes out as it went in from a hundred thousand pieces, and its length is told with each', async () => {
    const body = randomBytes(100_000 * 32);
    const pieces = Array.from({ length: 100_000 }, (_, index) => body.subarray(index * 32, (index + 1) * 32));
    const told: number[] = [];
    const result = await readBody(Readable.from(pieces), 16 * MIB, (bytes) => told.push(bytes));
    expect(result.equals(body)).toBe(true);
    expect([told.length, told[0], told.at(-1)]).toEqual([100_000, 32, body.length]);
  });

  it('that is too long is refused before it has been received, one that breaks off at its end', async () => {
    const endless = new PassThrough();
    const refused = readBody(endless, MIB);
    endless.write(Buffer.alloc(MIB));
    endless.write(Buffer.alloc(1));
    await expect(refused).rejects.toMatchObject({ statusCode: 413 });
    const broken = new PassThrough();
    const reading = readBody(broken, MIB);
    broken.write('half');
    broken.destroy(new Error('reset'));
    await expect(reading).rejects.toMatchObject({ statusCode: 400 });
  });

  it('has the digest that it has in one piece', async () => {
    const body = randomBytes(2 * MIB + 7);
    const { result, turns } = await turnsDuring(Promise.resolve(sha256Of(body)));
    expect(result).toBe(createHash('sha256').update(body).digest('hex'));
    expect(turns).toBeGreaterThan(7);
  });
});

describe('large bodies of many senders', () => {
  it('are looked at one piece a turn of the loop, in turn, and those of a usual size wait for none of them', async () => {
    const body = randomBytes(LARGE_BYTES + 1);
    const ended: number[] = [];
    const many = Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        await hmacOf('key', body);
        ended.push(index);
      }),
    );
    expect(hmacOf('key', body.subarray(1))).toEqual(expect.any(String));
    const longer = sha256Of(randomBytes(MIB));
    const later = hmacOf('key', body);
    const { turns } = await turnsDuring(many);
    expect(turns).toBeGreaterThanOrEqual(30);
    expect(ended).toEqual(Array.from({ length: 30 }, (_, index) => index));
    // The first piece of four had its turn before this one's; the others have theirs behind it.
    expect(
      await Promise.race([Promise.resolve(longer).then(() => 'longer'), Promise.resolve(later).then(() => 'later')]),
    ).toBe('later');
    await longer;
  });
});

describe('a signature', () => {
  it('is the HMAC of RFC 2104, whatever the lengths of key and body', async () => {
    const lengths = [0, 1, 55, 56, 63, 64, 65, 1_000, 16_383, 16_384, 16_385, LARGE_BYTES, LARGE_BYTES + 1, 300_000];
    for (const keyLength of [0, 1, 32, 63, 64, 65, 500])
      for (const length of lengths) {
        const [key, body] = [randomBytes(keyLength), randomBytes(length)];
        const expected = createHmac('sha256', key).update(body).digest('hex');
        expect(await hmacOf(key, body)).toBe(expected);
        const text = key.toString('base64');
        expect(await hmacOf(text, body)).toBe(createHmac('sha256', text).update(body).digest('hex'));
      }
  });

  it('is of the key that is asked for, however many others were asked for since', () => {
    const body = Buffer.from('body');
    for (let key = 0; key < 3_000; key += 1)
      for (const text of [String(key), 'first'])
        expect(smallHmacOf(text, body)).toBe(createHmac('sha256', text).update(body).digest('hex'));
  });
});

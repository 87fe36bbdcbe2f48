import { Readable } from 'node:stream';
import type { ObjectStore } from '@penstock/object-store';
import { describe, expect, it } from 'vitest';
import { ARTIFACT_PREFIX, Contents } from '../src/artifacts/contents.ts';
import { PARTS_AT_ONCE } from '../src/catalogue/parts-at-once.ts';

const RUN = '0198c0de-0000-7000-8000-000000000000';
const SHA256 = 'a'.repeat(64);

describe('parts of contents', () => {
  it('are read a few at a time, however many are asked for at once', async () => {
    const underWay: (() => void)[] = [];
    let most = 0;
    const objects = {
      get: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        underWay.push(resolve);
        most = Math.max(most, underWay.length);
        await promise;
        return { head: { size: 4 }, bytes: Readable.from([Buffer.from('kept')]) };
      },
    } as unknown as ObjectStore;
    const contents = new Contents(objects, ARTIFACT_PREFIX);
    const asked = Array.from({ length: 10 * PARTS_AT_ONCE }, () =>
      contents.part(RUN, { sha256: SHA256, offset: 0 }, 'user/a'),
    );
    let answered = 0;
    for (const part of asked) void part.then(() => (answered += 1));
    while (answered < asked.length) {
      underWay.shift()?.();
      await new Promise(setImmediate);
    }
    expect(most).toBe(PARTS_AT_ONCE);
    expect(await asked[0]).toMatchObject({ data: Buffer.from('kept').toString('base64'), sizeBytes: 4 });
  });

  it('that cannot be read leave their place to the next', async () => {
    const objects = { get: () => Promise.reject(new Error('away')) } as unknown as ObjectStore;
    const contents = new Contents(objects, ARTIFACT_PREFIX);
    const asked = Array.from({ length: 2 * PARTS_AT_ONCE }, () =>
      contents.part(RUN, { sha256: SHA256, offset: 0 }, 'user/a'),
    );
    expect((await Promise.allSettled(asked)).every(({ status }) => status === 'rejected')).toBe(true);
  });
});

import type { DocumentStore } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { expect, it } from 'vitest';
import { Downloads } from '../src/catalogue/downloads.ts';

it('downloads are counted also after other registries could not be told of them', async () => {
  const written: number[] = [];
  const documents = {
    get: () => Promise.resolve(null),
    replaceNewer: ([{ count }]: [{ count: number }]) => (written.push(count), Promise.resolve({ stale: [] })),
  };
  const downloads = new Downloads({ collection: () => documents } as unknown as DocumentStore, {
    log: silentLog,
    changed: () => {
      throw new Error('the message is too large');
    },
  });
  for (let count = 1; count <= 2; count += 1) {
    downloads.note('a/b');
    await downloads.flush();
  }
  expect(written).toEqual([1, 1]);
});

import { ObjectsFull, ObjectsUnavailable, type ObjectStore } from '@penstock/object-store';
import { expect, it } from 'vitest';
import { tellingWhenFull } from '../src/artifacts/full-storage.ts';

it('a storage without room is told in the log once in ten minutes, one that does not answer is not', async () => {
  let now = 0;
  let failure: Error = new ObjectsUnavailable('away');
  const said: string[] = [];
  const objects = {
    put: () => Promise.reject(failure),
    checkRoom: () => Promise.reject(failure),
  } as unknown as ObjectStore;
  const log = { error: ({ err }: Record<string, unknown>) => void said.push((err as Error).message) };
  const telling = tellingWhenFull(objects, log, { bootNow: () => now });
  await expect(telling.checkRoom()).rejects.toBe(failure);
  expect(said).toEqual([]);
  failure = new ObjectsFull('1 MiB free');
  for (now of [0, 599_999, 600_000]) {
    await expect(telling.checkRoom()).rejects.toBe(failure);
    await expect(telling.put('key', [] as never, { sha256: '', bytesMax: 1 })).rejects.toBe(failure);
  }
  expect(said).toEqual([failure.message, failure.message]);
});

/** Pointers to archived logs (P34). */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ArchivedLog,
  type DocumentStore,
  LogArchive,
  openSqliteStore,
  runCollections,
  RunsRepository,
} from '../src/index.ts';
import { runDocument, runId } from './support.ts';

describe('the pointers to archived logs', () => {
  let folder: string;
  let store: DocumentStore;
  let archive: LogArchive;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-pointers-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
    archive = new LogArchive(store);
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  const pointer = (number: number, more: Partial<ArchivedLog> = {}): ArchivedLog => ({
    runId: runId(number),
    tenant: 'service',
    pack: 'one',
    objects: 1,
    bytes: 10 + number,
    archivedAt: 1_000 + number,
    generation: 1,
    frames: [[0, 7, 10 + number, 3, 9]],
    last: { r1: 9, r2: 8 },
    ...more,
  });

  it('of a run is the first that was added', async () => {
    expect(await archive.of(runId(1))).toBeNull();
    expect(await archive.add(pointer(1))).toBe(true);
    expect(await archive.add(pointer(1, { pack: 'two' }))).toBe(false);
    expect(await archive.of(runId(1))).toEqual(pointer(1));
    expect(await archive.among([runId(1), runId(2)])).toEqual(new Set([runId(1)]));
  });

  it('moves over a lower generation only: of two that write a pack anew one stands', async () => {
    await archive.add(pointer(1));
    await archive.move([pointer(1, { pack: 'two', generation: 2 })]);
    await archive.move([pointer(1, { pack: 'three', generation: 2 })]);
    expect(await archive.of(runId(1))).toEqual(pointer(1, { pack: 'two', generation: 2 }));
  });

  it('are found by their pack, by their age and in pages, and are gone once removed', async () => {
    for (const number of [1, 2, 3]) await archive.add(pointer(number, number === 3 ? { pack: 'two' } : {}));
    const idsOf = (heads: readonly { readonly runId: string }[]): readonly string[] => heads.map((head) => head.runId);
    expect(idsOf(await archive.ofPack('one', 10))).toEqual([runId(1), runId(2)]);
    expect(idsOf(await archive.before(1_003, 10))).toEqual([runId(1), runId(2)]);
    await archive.remove(runId(1));
    expect(idsOf((await Array.fromAsync(archive.pages())).flat())).toEqual([runId(2), runId(3)]);
    expect(await archive.of(runId(1))).toBeNull();
  });

  it('knows which runs are open, closed or deleted', async () => {
    const runs = new RunsRepository(store);
    await runs.saveBatch([
      runDocument({ id: runId(1), sequence: 7, open: true }),
      runDocument({ id: runId(2), sequence: 7, open: false }),
      runDocument({ id: runId(3), sequence: 7, open: false }),
    ]);
    const place = { partition: 0, tenant: 'service', parent: '', incarnation: 1, sequence: 20 };
    await runs.saveTombstones([{ id: runId(3), ...place, deletedAt: 1_000 }]);
    const standings = await archive.standings([1, 2, 3, 4].map((number) => runId(number)));
    expect([1, 2, 3, 4].map((number) => standings.get(runId(number))?.state)).toEqual([
      'open',
      'closed',
      'deleted',
      undefined,
    ]);
  });
});

/** Runs whose documents are damaged, on SQLite; `mongodb-runs.test.ts` runs them on MongoDB. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeletedRuns, openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '../src/index.ts';
import { runsSpec } from '../src/run-documents.ts';
import { runDocument, runId } from './support.ts';

const TENANTS = ['service'];
const ENDED = { status: 'SUCCESS', stages: [] } as const;

describe('a run whose document is damaged', () => {
  let folder: string;
  let store: DocumentStore;
  let told: unknown[];
  let runs: RunsRepository;

  const repository = (viewCharactersMax?: number): RunsRepository =>
    new RunsRepository(store, {
      ...(viewCharactersMax === undefined ? {} : { viewCharactersMax }),
      log: { error: ({ runId: id }) => void told.push(id) },
    });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-damaged-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
    told = [];
    runs = repository();
    await runs.saveBatch([1, 2, 3].map((number) => runDocument({ id: runId(number), repository: 'o/r', commit: 'c' })));
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  async function damage(parts: { readonly view?: string; readonly story?: string }): Promise<void> {
    const documents = store.collection(runsSpec);
    const document = await documents.get(runId(2));
    if (document === null) throw new Error('it was not saved');
    await documents.replaceNewer([{ ...document, incarnation: 2, ...parts }]);
  }

  const damagedViews = ['', '{"id":"', 'null', '[]', '{}', JSON.stringify({ id: runId(2), ...ENDED, stages: [null] })];

  it.each(damagedViews)(
    'is in every list as its story has it where its view is %j, and is told of once',
    async (view) => {
      const whole = await runs.page({ tenants: TENANTS, limit: 10 });
      await damage({ view });
      for (const reader of [runs, repository(1_000_000)]) {
        told = [];
        for (let read = 0; read < 2; read++)
          expect(await reader.page({ tenants: TENANTS, limit: 10 })).toMatchObject(
            whole.map(({ id, status, commit }) => ({ id, status, commit })),
          );
        expect(await reader.view(runId(2), { tenants: TENANTS })).toMatchObject({ id: runId(2), commit: 'c' });
        expect(await reader.view(runId(2), { tenants: ['bob'] })).toBeNull();
        expect(await reader.approverView(runId(2), ['ada'])).toBeNull();
        expect(told).toEqual([runId(2)]);
      }
      expect(await runs.pipelineHealth('build', { tenants: TENANTS, limit: 10 })).toMatchObject({ totalRuns: 3 });
    },
  );

  it('costs a take-over nothing where its view alone is damaged', async () => {
    await damage({ view: '{' });
    const document = await runs.getAsOwner(runId(2));
    expect(document).toMatchObject({ state: { id: runId(2) }, view: { id: runId(2), commit: 'c' } });
    const read = await Array.fromAsync(runs.laterThan(0, { incarnation: 1, sequence: 1 }));
    expect(read).toEqual([document]);
  });

  it.each(['', 'null', '{"state":{"key":"k"},"events":[]}'])(
    'is in every list as its fields have it where its story is %j too: neither ended later nor trusted',
    async (story) => {
      await damage({ view: '{', story });
      for (const reader of [runs, repository(1_000_000)])
        expect(await reader.page({ tenants: TENANTS, limit: 10 })).toMatchObject([
          { id: runId(3) },
          {
            id: runId(2),
            status: 'SUCCESS',
            startedAt: '2025-11-21T13:00:00.000Z',
            finishedAt: null,
            repository: 'o/r',
            version: 0,
            trusted: false,
            stages: [],
          },
          { id: runId(1) },
        ]);
    },
  );

  it('is no list of what others have adopted: all that a deleted run has kept stays', async () => {
    await runs.saveBatch([runDocument({ id: runId(2), parent: runId(1), sequence: 5 })]);
    const standing = { tenant: 'service', parent: '', deletedAt: 1, incarnation: 1, sequence: 9 };
    await runs.saveTombstones([{ id: runId(1), partition: 0, ...standing }]);
    const deleted = new DeletedRuns(store);
    expect(await deleted.heirsOf(runId(1))).toHaveLength(1);
    await damage({ view: '{' });
    expect(await deleted.heirsOf(runId(1))).toBeUndefined();
  });
});

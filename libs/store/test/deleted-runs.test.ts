/** Tombstones (P34), on SQLite; `mongodb-runs.test.ts` runs them on MongoDB. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  auditCollections,
  AuditRepository,
  DeletedRuns,
  openSqliteStore,
  runCollections,
  RunsRepository,
  StoredRetention,
  type DocumentStore,
  type Tombstone,
} from '../src/index.ts';
import { runDocument, runId } from './support.ts';

const DAY_MS = 86_400_000;

describe('P34: a deleted run', () => {
  let folder: string;
  let store: DocumentStore;
  let runs: RunsRepository;
  let deleted: DeletedRuns;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-deleted-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
    runs = new RunsRepository(store);
    deleted = new DeletedRuns(store);
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  const tombstone = (id: string, more: Partial<Tombstone> = {}): Tombstone => ({
    id,
    partition: 0,
    tenant: 'service',
    parent: '',
    deletedAt: 1_000,
    incarnation: 1,
    sequence: 20,
    ...more,
  });

  it('is in no answer about runs, and its id counts as used', async () => {
    await runs.saveBatch([runDocument({ id: runId(1), sequence: 7 }), runDocument({ id: runId(2), sequence: 7 })]);
    expect(await deleted.standingOf(runId(1))).toEqual({ tenant: 'service', parent: '', open: false });
    await runs.saveTombstones([tombstone(runId(1))]);
    const tenants = ['service', ''];
    expect(await runs.get(runId(1), { tenants: ['service'] })).toBeNull();
    expect(await runs.view(runId(1), { tenants: ['service'] })).toBeNull();
    expect(await runs.approverView(runId(1), ['ada'])).toBeNull();
    expect(await runs.getAsOwner(runId(1))).toBeNull();
    expect(await runs.standingOf(runId(1))).toBeNull();
    expect((await runs.page({ tenants: ['service'], limit: 10 })).map(({ id }) => id)).toEqual([runId(2)]);
    expect(await runs.children({ id: runId(3), tenant: tenants[1] ?? '' })).toEqual([]);
    expect(await runs.exists([runId(1), runId(3)])).toEqual(new Set([runId(1)]));
    expect(await runs.deletedAmong([runId(1), runId(2), runId(3)])).toEqual(new Set([runId(1)]));
    expect(await Array.fromAsync(runs.openOf(0))).toEqual([]);
    const later = await Array.fromAsync(runs.laterThan(0, { incarnation: 1, sequence: 0 }));
    expect(later).toMatchObject([{ state: { id: runId(2) } }]);
  });

  it('P8: no document of an earlier commit takes its place, and it takes none of a later one', async () => {
    await runs.saveTombstones([tombstone(runId(1), { sequence: 20 })]);
    const { stale } = await runs.saveBatch([runDocument({ id: runId(1), sequence: 19 })]);
    expect(stale).toEqual([runId(1)]);
    expect(await runs.getAsOwner(runId(1))).toBeNull();
    await runs.saveBatch([runDocument({ id: runId(2), sequence: 30 })]);
    await runs.saveTombstones([tombstone(runId(2), { sequence: 20 })]);
    expect(await runs.getAsOwner(runId(2))).not.toBeNull();
  });

  it('is forgotten after its days, by id and in bounded steps; those of other partitions stay', async () => {
    const young = tombstone(runId(2), { deletedAt: 9 * DAY_MS });
    await runs.saveTombstones([tombstone(runId(1)), young, tombstone(runId(3)), tombstone(runId(4), { partition: 1 })]);
    const first = await deleted.tombstonesBefore(0, 8 * DAY_MS, { after: undefined, limit: 2 });
    expect(first).toEqual({ over: [runId(1)], last: runId(2) });
    const second = await deleted.tombstonesBefore(0, 8 * DAY_MS, { after: first.last, limit: 2 });
    expect(second).toEqual({ over: [runId(3)], last: undefined });
    await deleted.forget([...first.over, ...second.over]);
    expect(await runs.exists([1, 2, 3, 4].map((number) => runId(number)))).toEqual(new Set([runId(2), runId(4)]));
  });

  it('names those that repeat it, also behind a deleted one; its tombstone stays as long as they', async () => {
    const [root, child, grandchild, other] = [runId(1), runId(2), runId(3), runId(4)];
    const rerun = (id: string, parent: string) => runDocument({ id, parent });
    await runs.saveBatch([rerun(grandchild, child), rerun(other, runId(9))]);
    expect(await deleted.heirsOf(root)).toEqual([]);
    await runs.saveTombstones([tombstone(root), tombstone(child, { parent: root })]);
    expect((await deleted.heirsOf(root))?.map(({ id }) => id)).toEqual([grandchild]);
    expect((await deleted.heirsOf(child))?.map(({ id }) => id)).toEqual([grandchild]);
    expect(await deleted.heirsOf(grandchild)).toEqual([]);
    const over = async () => (await deleted.tombstonesBefore(0, 8 * DAY_MS, { after: undefined, limit: 9 })).over;
    expect(await over()).toEqual([]);
    await runs.saveTombstones([tombstone(grandchild, { parent: child })]);
    expect(await over()).toEqual([grandchild]);
    await deleted.forget([grandchild]);
    expect(await over()).toEqual([child]);
  });
});

describe('P34: what is old', () => {
  let folder: string;
  let store: DocumentStore;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-old-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: [...runCollections, ...auditCollections],
      synchronous: 'normal',
    });
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  it('is found by its partition, closed, by age, in pages; with the newest of its pipeline and its end', async () => {
    const runs = new RunsRepository(store);
    const retention = new StoredRetention(store);
    const ids = [1, 2, 3, 4, 5].map((number) => runId(number));
    await runs.saveBatch([
      ...ids.map((id) => runDocument({ id })),
      runDocument({ id: runId(6), open: true }),
      runDocument({ id: runId(7), partition: 1 }),
    ]);
    const before = 1_763_730_000_000 + 5;
    const first = await retention.closedBefore(0, before, { after: undefined, limit: 3 });
    expect(first.runs.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    expect(first.runs[0]).toEqual({
      id: ids[0],
      tenant: 'service',
      parent: '',
      open: false,
      pipelineName: 'build',
      keepDays: 0,
      keepRuns: 0,
    });
    const second = await retention.closedBefore(0, before, { after: first.last, limit: 3 });
    expect(second).toMatchObject({ runs: [{ id: ids[3] }], last: undefined });
    const pipeline = { tenant: 'service', pipelineName: 'build' };
    expect(await retention.oldestOfNewest(pipeline, 3)).toBe(ids[4]);
    expect(await retention.oldestOfNewest(pipeline, 8)).toBeUndefined();
    expect(await retention.finishedAt(runId(1))).toBeUndefined();
    expect(await retention.finishedAt(runId(9))).toBeUndefined();
  });

  it('of the audit log goes by its time, at most so many at once', async () => {
    const audit = new AuditRepository(store, { log: { warn: () => {} } });
    for (const at of [1_000, 2_000, 3_000, 4_000])
      audit.record({ at, actor: 'a', action: 'login', target: '', outcome: 'ok' });
    await audit.close();
    const retention = new StoredRetention(store);
    expect(await retention.forgetAudit(3_500, 2)).toBe(2);
    expect(await retention.forgetAudit(3_500, 2)).toBe(1);
    expect((await new AuditRepository(store, { log: { warn: () => {} } }).newest(10)).map(({ at }) => at)).toEqual([
      4_000,
    ]);
  });
});

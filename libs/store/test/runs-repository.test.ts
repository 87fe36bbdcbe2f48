import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  encodeRun,
  openSqliteStore,
  runCollections,
  RunsRepository,
  type DocumentStore,
  type RunDocument,
  type UnreadableRun,
} from '../src/index.ts';
import { runsSpec } from '../src/run-documents.ts';
import { matchesFilter, refsOf, type StageState } from '@penstock/run';
import { KEY, runDocument, runId, stageView } from './support.ts';

describe('runs repository', () => {
  let folder: string;
  let store: DocumentStore;
  let runs: RunsRepository;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-runs-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
    runs = new RunsRepository(store);
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  it('P6: gives back all that the actor needs, as it was saved', async () => {
    const document = runDocument({ id: runId(1), open: true, sequence: 7, yaml: 'stages:\n'.repeat(1_000) });
    expect(await runs.saveBatch([document])).toEqual({ stale: [] });
    expect(await runs.getAsOwner(runId(1))).toEqual(document);
    expect(await runs.get(runId(1), { tenants: ['service'] })).toEqual(document);
    expect(await runs.view(runId(1), { tenants: ['service'] })).toEqual(document.view);
  });

  it('a run of another tenant does not exist for a client, by no method', async () => {
    await runs.saveBatch([runDocument({ id: runId(1), tenant: 'alice', key: 'alice' }), runDocument({ id: runId(2) })]);
    for (const tenants of [['service'], ['bob'], ['', 'ALICE', 'alice '], []]) {
      expect(await runs.get(runId(1), { tenants })).toBeNull();
      expect(await runs.view(runId(1), { tenants })).toBeNull();
      expect((await runs.page({ tenants, limit: 100 })).map(({ id }) => id)).not.toContain(runId(1));
      expect(await runs.pipelineHealth('build', { tenants, limit: 100 })).toMatchObject({
        totalRuns: tenants.includes('service') ? 1 : 0,
      });
    }
    expect(await runs.view(runId(1), { tenants: ['service', 'alice'] })).toMatchObject({ id: runId(1) });
    expect(await runs.page({ tenants: [], limit: 100 })).toEqual([]);
  });

  it('P8: writes a document over a lower (incarnation, sequence) only', async () => {
    const at = (incarnation: number, sequence: number, version: number) =>
      runDocument({ id: runId(1), incarnation, sequence, version });
    await runs.saveBatch([at(1, 10, 5)]);
    expect(await runs.saveBatch([at(1, 10, 6), runDocument({ id: runId(2) })])).toEqual({ stale: [runId(1)] });
    expect(await runs.saveBatch([at(1, 9, 6)])).toEqual({ stale: [runId(1)] });
    expect((await runs.view(runId(1), { tenants: ['service'] }))?.version).toBe(5);
    expect(await runs.saveBatch([at(2, 1, 6)])).toEqual({ stale: [] });
    expect((await runs.view(runId(1), { tenants: ['service'] }))?.version).toBe(6);
  });

  it('P8: writes a checkpoint over a lower one only, for each partition apart', async () => {
    expect(await runs.checkpoint(3)).toBeNull();
    const first = { partition: 3, incarnation: 1, sequence: 40, commit: 12 };
    expect(await runs.saveCheckpoint(first)).toBe('saved');
    expect(await runs.saveCheckpoint(first)).toBe('stale');
    expect(await runs.saveCheckpoint({ ...first, sequence: 39, commit: 11 })).toBe('stale');
    expect(await runs.checkpoint(3)).toEqual(first);
    expect(await runs.saveCheckpoint({ partition: 3, incarnation: 2, sequence: 1, commit: 13 })).toBe('saved');
    expect(await runs.checkpoint(3)).toEqual({ partition: 3, incarnation: 2, sequence: 1, commit: 13 });
    expect(await runs.checkpoint(4)).toBeNull();
  });

  it("P27: the head of a pull request is the commit of its latest delivery, and of no other's", async () => {
    const of = {
      tenant: 'service',
      key: KEY,
      provider: 'github',
      repository: 'o/r',
      ref: 'refs/pull/5/head',
      number: 5,
    } as const;
    const head = (
      number: number,
      pull: { readonly sequence?: number; readonly number?: number; readonly provider?: string; readonly key?: string },
    ): RunDocument => {
      const { sequence, provider = 'github' } = pull;
      const pullRequest = { number: pull.number ?? 5, branch: 'main', fork: false, sequence };
      const { key = KEY } = pull;
      const document = runDocument({ ...of, id: runId(number), key, commit: `c${number}` });
      return { ...document, view: { ...document.view, provider, pullRequest } };
    };
    expect(await runs.headOf(of)).toBeNull();
    await runs.saveBatch([
      head(1, { sequence: 30 }),
      head(2, { sequence: 41 }),
      // A delivery that was late.
      head(3, { sequence: 17 }),
      head(4, {}),
      head(5, { sequence: 99, number: 6 }),
      head(6, { sequence: 98, provider: 'gitlab' }),
      head(7, { sequence: 97, key: 'alice' }),
      runDocument({ ...of, id: runId(8), commit: 'c8' }),
    ]);
    expect(await runs.headOf(of)).toEqual({ sequence: 41, commit: 'c2' });
    expect(await runs.headOf({ ...of, number: 6 })).toEqual({ sequence: 99, commit: 'c5' });
    for (const other of [{ tenant: 'alice' }, { repository: 'o/x' }, { ref: 'refs/pull/7/head' }, { number: 7 }])
      expect(await runs.headOf({ ...of, ...other })).toBeNull();
  });

  it('P6: take-over reads the open runs of its partition, each once, also while they are many', async () => {
    const documents = Array.from({ length: 230 }, (_, index) =>
      runDocument({ id: runId(index), open: index % 2 === 0, partition: index % 3 === 0 ? 1 : 0, sequence: index }),
    );
    await runs.saveBatch(documents);
    const expected = documents.filter(({ open, partition }) => open && partition === 0).map(({ state }) => state.id);
    expect((await all(runs.openOf(0))).map(idOf)).toEqual(expected);
    expect(await all(runs.openOf(9))).toEqual([]);
  });

  it('P6: a document that is damaged keeps a take-over from none of the others', async () => {
    const ids = Array.from({ length: 120 }, (_, index) => runId(index));
    await runs.saveBatch(ids.map((id, index) => runDocument({ id, open: true, sequence: 1 + index })));
    const documents = store.collection(runsSpec);
    for (const [at, story] of [
      [3, ''],
      [49, '{"state":{"id":"'],
      [90, 'null'],
      [91, '{"state":{"key":"k"}}'],
    ] as const) {
      const document = await documents.get(runId(at));
      if (document === null) throw new Error('it was not saved');
      await documents.replaceNewer([{ ...document, incarnation: 2, story }]);
    }
    const later = await all(runs.laterThan(0, { incarnation: 1, sequence: 0 }));
    for (const found of [await all(runs.openOf(0)), later]) {
      expect(found.map(idOf).toSorted()).toEqual(ids);
      expect(found.filter((run) => 'unreadable' in run)).toMatchObject([
        { id: runId(3), open: true, incarnation: 2, sequence: 4 },
        { id: runId(49), sequence: 50 },
        { id: runId(90), sequence: 91 },
        { id: runId(91), sequence: 92 },
      ]);
    }
  });

  it('P6: take-over reads what stands for a later commit, of this incarnation and those after it', async () => {
    const documents = Array.from({ length: 900 }, (_, index) =>
      runDocument({
        id: runId(899 - index),
        incarnation: 1 + (index % 3),
        sequence: Math.floor(index / 20),
        partition: index % 5 === 0 ? 1 : 0,
      }),
    );
    await runs.saveBatch(documents);
    for (const position of [
      { incarnation: 1, sequence: 20 },
      { incarnation: 2, sequence: 0 },
      { incarnation: 0, sequence: 0 },
      { incarnation: 3, sequence: 1_000 },
    ]) {
      const later = ({ incarnation, sequence, partition }: RunDocument) =>
        partition === 0 &&
        (incarnation > position.incarnation || (incarnation === position.incarnation && sequence > position.sequence));
      const found = (await all(runs.laterThan(0, position))).map(idOf);
      expect(found.toSorted()).toEqual(
        documents
          .filter(later)
          .map(({ state }) => state.id)
          .toSorted(),
      );
    }
  });

  it('pages through the runs of several tenants, newest first, each once', async () => {
    const tenants = ['service', 'alice', 'bob'];
    await runs.saveBatch(
      Array.from({ length: 90 }, (_, index) =>
        runDocument({
          id: runId(index),
          tenant: tenants[index % 3] ?? '',
          pipelineName: index % 2 === 0 ? 'build' : 'deploy',
        }),
      ),
    );
    const seen: string[] = [];
    for (let before: string | undefined; ; before = seen.at(-1)) {
      const page = await runs.page({ tenants: ['service', 'bob'], before, limit: 7 });
      if (page.length === 0) break;
      seen.push(...page.map(({ id }) => id));
    }
    expect(seen).toEqual(
      Array.from({ length: 90 }, (_, index) => index)
        .filter((index) => index % 3 !== 1)
        .toReversed()
        .map((index) => runId(index)),
    );
    const builds = await runs.page({ tenants: ['alice'], pipelineName: 'build', limit: 500 });
    expect(builds.map(({ id }) => id)).toEqual(
      Array.from({ length: 90 }, (_, index) => index)
        .filter((index) => index % 6 === 4)
        .toReversed()
        .map((index) => runId(index)),
    );
  });

  it('pages by any choice of filters as if all runs had been looked at', async () => {
    const some = Array.from({ length: 120 }, (_, index) => ({
      id: runId(index),
      tenant: index % 5 === 0 ? 'alice' : 'service',
      pipelineName: index % 2 === 0 ? 'build' : 'deploy',
      status: index % 3 === 0 ? ('FAILED' as const) : ('SUCCESS' as const),
      ...(index % 4 === 0 ? {} : { repository: `o/${index % 4}`, ref: index % 7 < 4 ? 'refs/heads/main' : 'v1' }),
    }));
    const documents = some.map((each) => runDocument(each));
    await runs.saveBatch(documents);
    const choices = [{}, { pipelineName: 'deploy' }].flatMap((byName) =>
      [{}, { status: 'FAILED' as const }].flatMap((byStatus) =>
        [{}, { repository: 'o/1' }].flatMap((byRepository) =>
          [{}, { refs: refsOf('main') }].map((byRef) => ({ ...byName, ...byStatus, ...byRepository, ...byRef })),
        ),
      ),
    );
    for (const filter of choices) {
      const seen: string[] = [];
      for (let before: string | undefined; ; before = seen.at(-1)) {
        const page = await runs.page({ ...filter, tenants: ['service', 'bob'], before, limit: 7 });
        seen.push(...page.map(({ id }) => id));
        if (page.length < 7) break;
      }
      const expected = documents
        .filter(({ view }) => view.tenant === 'service' && matchesFilter(view, filter))
        .map(({ state }) => state.id);
      expect([filter, seen]).toEqual([filter, expected.toReversed()]);
      expect(expected.length).toBeGreaterThan(0);
    }
  });

  it('a page of large runs is read in steps, and each view is told before it is parsed', async () => {
    const outputs = [{ key: 'notes', value: 'x'.repeat(600_000) }];
    await runs.saveBatch(
      Array.from({ length: 30 }, (_, index) => {
        const document = runDocument({ id: runId(index) });
        return { ...document, view: { ...document.view, stages: [{ ...stageView('a', 'SUCCESS'), outputs }] } };
      }),
    );
    const told: number[] = [];
    const page = await runs.page({
      tenants: ['service'],
      limit: 30,
      meter: (characters) => void told.push(characters),
    });
    expect(page.map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, index) => runId(29 - index)));
    expect([told.length, told.every((characters) => characters > 600_000)]).toEqual([30, true]);
    const enough = new RangeError('enough');
    let read = 0;
    const stopped = runs.page({
      tenants: ['service'],
      limit: 30,
      meter: () => {
        read += 1;
        if (read > 3) throw enough;
      },
    });
    await expect(stopped).rejects.toBe(enough);
  });

  it('refuses a page without a bound', async () => {
    for (const limit of [0, -1, 501, Number.NaN, 1.5])
      await expect(runs.page({ tenants: ['service'], limit })).rejects.toMatchObject({ tag: 'StoreUsageError' });
  });

  it('P7: says which runs have a document, for any number of ids', async () => {
    await runs.saveBatch(Array.from({ length: 1_300 }, (_, index) => runDocument({ id: runId(index * 2) })));
    const found = await runs.exists(Array.from({ length: 2_600 }, (_, index) => runId(index)));
    expect(found.size).toBe(1_300);
    expect(found.has(runId(1))).toBe(false);
    expect(await runs.exists([])).toEqual(new Set());
  });

  it('health: the window is the newest runs of that name', async () => {
    await runs.saveBatch(
      Array.from({ length: 20 }, (_, index) =>
        runDocument({
          id: runId(index),
          pipelineName: index % 2 === 0 ? 'build' : 'deploy',
          status: index < 10 ? 'FAILED' : 'SUCCESS',
        }),
      ),
    );
    expect(await runs.pipelineHealth('build', { tenants: ['service'], limit: 5 })).toMatchObject({
      totalRuns: 5,
      succeeded: 5,
      successRate: 1,
    });
    expect(await runs.pipelineHealth('build', { tenants: ['service'], limit: 500 })).toMatchObject({
      totalRuns: 10,
      succeeded: 5,
      failed: 5,
      successRate: 0.5,
    });
    expect(await runs.pipelineHealth('nothing', { tenants: ['service'], limit: 50 })).toMatchObject({
      totalRuns: 0,
      successRate: 0,
    });
  });

  it('an earlier failure is the newest before the run, of its tenant, key, trust, commit and definition, that failed by itself', async () => {
    const like = { commit: 'c1', fingerprint: 'f1', status: 'FAILED' } as const;
    const exit = [stageView('a', 'FAILED', { reason: 'exit' })];
    await runs.saveBatch([
      runDocument({ ...like, id: runId(1), stages: exit }),
      runDocument({ ...like, id: runId(2), stages: exit }),
      runDocument({ ...like, id: runId(3), stages: [stageView('a', 'FAILED', { reason: 'image' })] }),
      runDocument({ ...like, id: runId(4), stages: exit, status: 'SUCCESS' }),
      runDocument({ ...like, id: runId(5), stages: exit, fingerprint: 'f2' }),
      runDocument({ ...like, id: runId(6), stages: exit, commit: 'c2' }),
      runDocument({ ...like, id: runId(7), stages: exit, tenant: 'alice', key: 'alice' }),
      // Of strangers that share the tenant: an unsigned delivery's, and one that got no secrets.
      runDocument({ ...like, id: runId(8), stages: exit, key: `${KEY} of others` }),
      runDocument({ ...like, id: runId(9), stages: exit, trusted: false }),
      runDocument({ ...like, id: runId(10), stages: exit }),
    ]);
    const of = async (number: number, more: object = {}) =>
      (await runs.earlierFailure({ id: runId(number), tenant: 'service', key: KEY, ...like, ...more }))?.id ?? null;
    expect(await of(10)).toBe(runId(2));
    expect(await of(10, { trusted: false })).toBe(runId(9));
    expect(await of(10, { key: `${KEY} of others` })).toBe(runId(8));
    expect(await of(2)).toBe(runId(1));
    expect(await of(1)).toBeNull();
    expect(await of(10, { commit: undefined })).toBeNull();
    expect(await of(10, { fingerprint: undefined })).toBeNull();
  });

  it('P23: keeps the counter of a key and month, over a lower one only', async () => {
    const counter = {
      partition: 2,
      tenant: 'service',
      key: KEY,
      month: '2026-11',
      runs: 41,
      stageMs: 1_500,
      active: 2,
      maxConcurrent: null,
      incarnation: 1,
      sequence: 10,
    };
    await runs.saveCounters([
      counter,
      { ...counter, key: `${KEY}/${'x'.repeat(5_000)}`, runs: 1 },
      { ...counter, month: '2026-10', runs: 900 },
    ]);
    await runs.saveCounters([{ ...counter, runs: 40, sequence: 9 }]);
    expect(await runs.counter(KEY, '2026-11')).toEqual(counter);
    await runs.saveCounters([{ ...counter, runs: 42, sequence: 11 }]);
    expect(await runs.counter(KEY, '2026-11')).toMatchObject({ runs: 42 });
    expect(await runs.counter('nobody', '2026-11')).toBeNull();
    expect((await all(runs.countersOf(2, '2026-11'))).map(({ runs: count }) => count).toSorted()).toEqual([1, 42]);
    expect(await all(runs.countersOf(1, '2026-11'))).toEqual([]);
  });

  it('P23: tells what a tenant has used in a month, and what it has now', async () => {
    const counter = {
      partition: 2,
      tenant: 'ada',
      key: 'ada',
      month: '2026-11',
      runs: 41,
      stageMs: 61_999,
      active: 2,
      maxConcurrent: 3,
      incarnation: 1,
      sequence: 10,
    };
    // What a key has now is in the counter of its newest month; others' keys are nobody else's.
    await runs.saveCounters([
      { ...counter, month: '2026-10', runs: 7, stageMs: 1_000, active: 9 },
      counter,
      { ...counter, tenant: 'eve', key: 'eve', runs: 1_000 },
    ]);
    expect(await runs.usage({ tenant: 'ada', month: '2026-11' })).toEqual({
      pipelineRuns: 41,
      concurrentRuns: 2,
      stageSeconds: 61,
    });
    expect(await runs.usage({ tenant: 'ada', month: '2026-10' })).toEqual({
      pipelineRuns: 7,
      concurrentRuns: 2,
      stageSeconds: 1,
    });
    expect(await runs.usage({ tenant: 'ada', month: '2026-12' })).toEqual({
      pipelineRuns: 0,
      concurrentRuns: 2,
      stageSeconds: 0,
    });
    expect(await runs.usage({ tenant: 'nobody', month: '2026-11' })).toEqual({
      pipelineRuns: 0,
      concurrentRuns: 0,
      stageSeconds: 0,
    });
  });

  it('P23: adds up the keys of the tenant service, however many', async () => {
    const keys = Array.from({ length: 1_203 }, (_, index) => ({
      partition: index % 16,
      tenant: 'service',
      key: `service/${index}`,
      month: '2026-11',
      runs: 2,
      stageMs: 500,
      active: 1,
      maxConcurrent: null,
      incarnation: 1,
      sequence: 1,
    }));
    await runs.saveCounters(keys);
    expect(await runs.usage({ tenant: 'service', month: '2026-11' })).toEqual({
      pipelineRuns: 2_406,
      concurrentRuns: 1_203,
      stageSeconds: 601,
    });
    expect((await all(runs.countersOf(3, '2026-11'))).length).toBe(
      keys.filter(({ partition }) => partition === 3).length,
    );
  });

  it('what was encoded does not change with the state', async () => {
    const document = runDocument({ id: runId(1), status: 'RUNNING' });
    const encoded = encodeRun(document);
    document.state.status = 'FAILED';
    await runs.saveBatch([encoded]);
    expect((await runs.getAsOwner(runId(1)))?.state.status).toBe('RUNNING');
  });

  it('takes a run whose name is half a surrogate pair, and one of the largest size', async () => {
    const large = runDocument({ id: runId(1), pipelineName: 'lone \ud800', yaml: 'x'.repeat(512 * 1024) });
    const outputs = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [`o${index}`, '\u0001'.repeat(64 * 1024)]),
    );
    (large.state.stages as StageState[]).push({ name: 's', status: 'SUCCESS', attempt: 1, failures: 0, outputs });
    expect(await runs.saveBatch([large])).toEqual({ stale: [] });
    expect((await runs.getAsOwner(runId(1)))?.state).toEqual(large.state);
  });
});

function idOf(run: RunDocument | UnreadableRun): string {
  return 'unreadable' in run ? run.id : run.state.id;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  return Array.fromAsync(items);
}

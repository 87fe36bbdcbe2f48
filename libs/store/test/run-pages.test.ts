/** Pages of a repository that keeps views are those of one that keeps none, whatever happens between them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteStore, runCollections, RunsRepository, type Collection, type DocumentStore } from '../src/index.ts';
import { runDocument, runId, stageView } from './support.ts';

describe('pages where views are kept', () => {
  let folder: string;
  let store: DocumentStore;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-pages-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  const [runsSpec] = runCollections;
  const documents = (): Collection<NonNullable<typeof runsSpec>> => {
    if (runsSpec === undefined) throw new Error('there are no runs');
    return store.collection(runsSpec);
  };

  type Step =
    | { readonly kind: 'save'; readonly number: number; readonly tenant: string; readonly name: string }
    | { readonly kind: 'delete'; readonly number: number }
    | {
        readonly kind: 'page';
        readonly limit: number;
        readonly before: number | undefined;
        readonly name: string | undefined;
        readonly withStages: boolean;
      };
  const number = fc.integer({ min: 0, max: 8 });
  const name = fc.constantFrom('build', 'other');
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('save' as const),
        number,
        tenant: fc.constantFrom('service', 'bob'),
        name,
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), number }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('page' as const),
        limit: fc.integer({ min: 1, max: 12 }),
        before: fc.option(number, { nil: undefined }),
        name: fc.option(name, { nil: undefined }),
        withStages: fc.boolean(),
      }),
    },
  );

  it('are the same, with changes, deletions and other versions between them, and with little room', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 15, maxLength: 50 }),
        fc.constantFrom(900, 4_000, 1_000_000),
        async (steps, room) => {
          const all = documents();
          for (const { id } of await all.list({ limit: 1_000, parts: [] })) await all.delete(id);
          const plain = new RunsRepository(store);
          const keeping = new RunsRepository(store, { viewCharactersMax: room });
          let sequence = 0;
          const given: unknown[] = [];
          const wanted: unknown[] = [];
          for (const one of steps) {
            sequence += 1;
            if (one.kind === 'save') {
              const { tenant, name: pipelineName } = one;
              const stages = [stageView(`stage-${sequence}`, 'SUCCESS')];
              await plain.saveBatch([
                runDocument({ id: runId(one.number), tenant, pipelineName, sequence, version: sequence, stages }),
              ]);
            } else if (one.kind === 'delete') {
              await all.delete(runId(one.number));
            } else {
              const { limit, withStages, before } = one;
              const page = {
                tenants: ['service'],
                limit,
                withStages,
                ...(one.name === undefined ? {} : { pipelineName: one.name }),
                ...(before === undefined ? {} : { before: runId(before) }),
              };
              given.push(await keeping.page(page));
              wanted.push(await plain.page(page));
            }
          }
          expect(given).toEqual(wanted);
        },
      ),
      { numRuns: 60 },
    );
  }, 120_000);

  it('read only the documents that are new, or another version by now', async () => {
    const save = (count: number, sequence: number): Promise<unknown> =>
      new RunsRepository(store).saveBatch(
        Array.from({ length: count }, (_, index) => runDocument({ id: runId(index), sequence, version: sequence })),
      );
    const keeping = new RunsRepository(store, { viewCharactersMax: 1_000_000 });
    const all = documents();
    await save(50, 1);
    const first = await keeping.page({ tenants: ['service'], limit: 50 });
    // What is written past the version of a document is not seen: it was not read again.
    const row = await all.get(runId(20));
    if (row === null) throw new Error('there is no such run');
    await all.delete(runId(20));
    await all.insert({ ...row, view: '{"id":"read"}', story: '' });
    expect(await keeping.page({ tenants: ['service'], limit: 50 })).toEqual(first);
    await save(50, 2);
    const later = await keeping.page({ tenants: ['service'], limit: 50 });
    expect(later.map(({ version }) => version)).toEqual(first.map(() => 2));
  });

  it('give each reader runs and stages of its own', async () => {
    const keeping = new RunsRepository(store, { viewCharactersMax: 1_000_000 });
    await keeping.saveBatch([runDocument({ id: runId(1), stages: [stageView('a', 'SUCCESS')] })]);
    const pages = [];
    for (let read = 0; read < 3; read++) pages.push(await keeping.page({ tenants: ['service'], limit: 5 }));
    const views = pages.flat();
    expect(new Set(views).size).toBe(3);
    expect(new Set(views.map(({ stages }) => stages[0])).size).toBe(3);
  });

  it('tell the characters of what is kept as of what is read', async () => {
    const keeping = new RunsRepository(store, { viewCharactersMax: 1_000_000 });
    await keeping.saveBatch(Array.from({ length: 12 }, (_, index) => runDocument({ id: runId(index) })));
    const told: number[][] = [];
    for (let read = 0; read < 2; read++) {
      const characters: number[] = [];
      await keeping.page({ tenants: ['service'], limit: 12, meter: (count) => void characters.push(count) });
      told.push(characters);
    }
    expect(told[0]).toHaveLength(12);
    expect(told[1]).toEqual(told[0]);
  });
});

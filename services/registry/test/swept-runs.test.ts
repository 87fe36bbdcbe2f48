/** What the sweep of kept files knows of runs that are deleted (P30, P34). */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { subjects, type Bus } from '@penstock/bus';
import { newRun, newRunId, partitionOf, planOf, viewOf, type RunCreated, type StageView } from '@penstock/run';
import { DeletedRuns, openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askOwner, sweptRuns, type SweptRunsParts } from '../src/artifacts/swept-runs.ts';

const NOW = 1_763_730_000_000;
const [ROOT, CHILD, GRANDCHILD] = [1, 2, 3].map((number) =>
  newRunId({ now: NOW + number, key: 'ada', random: new Uint8Array(8).fill(number) }),
) as [string, string, string];

let folder: string;
let store: DocumentStore;
let runs: RunsRepository;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-swept-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections, synchronous: 'normal' });
  runs = new RunsRepository(store);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const kept = { manifest: 'm1', files: 1, bytes: 10, expiresAt: NOW + 1_000 };

/** Of a run that repeats `parent`, and has a stage whose files lie in `run`. */
async function save(id: string, parent: string, run: string | undefined, finishedAt: string | null): Promise<void> {
  const created: RunCreated = {
    type: 'run_created',
    at: NOW,
    tenant: 'ada',
    key: 'ada',
    pipelineName: 'p',
    yaml: '',
    priority: 0,
    origin: { kind: 'api' },
    lineage: { parent, version: 1, root: ROOT, actors: [] },
  };
  const state = newRun(id, created, planOf({ name: 'p', schedule: [], stages: [] }));
  const artifacts = run === undefined ? kept : { ...kept, run };
  const stages = [{ name: 'a', status: 'SUCCESS', artifacts }] as unknown as readonly StageView[];
  const view = { ...viewOf(state), finishedAt, stages };
  await runs.saveBatch([
    { partition: 0, open: finishedAt === null, incarnation: 1, sequence: 1, state, events: [created], view },
  ]);
}

async function bury(id: string, parent = ''): Promise<void> {
  const standing = { tenant: 'ada', parent, deletedAt: NOW };
  await runs.saveTombstones([{ id, partition: 0, ...standing, incarnation: 1, sequence: 9 }]);
}

const END = '2025-11-21T13:00:00.000Z';

const sweptBy = (isWithOwner: SweptRunsParts['isWithOwner']): ReturnType<typeof sweptRuns> =>
  sweptRuns({ runs, deleted: new DeletedRuns(store), isWithOwner });

it('a run that was never there, or that nobody repeats once it is deleted, names nothing', async () => {
  const runOf = sweptBy(async () => false);
  expect(await runOf(ROOT)).toBeNull();
  await bury(ROOT);
  expect(await runOf(ROOT)).toBeNull();
});

it('of a deleted run that stays which others have adopted, also over a deleted one; their own files are not its', async () => {
  const runOf = sweptBy(async () => false);
  await save(GRANDCHILD, CHILD, ROOT, END);
  await bury(ROOT);
  await bury(CHILD, ROOT);
  expect(await runOf(ROOT)).toEqual({ open: false, view: { stages: [{ artifacts: kept }] } });
  expect(await runOf(CHILD)).toBeNull();
  await save(GRANDCHILD, CHILD, undefined, END);
  await bury(GRANDCHILD, CHILD);
  expect(await runOf(ROOT)).toBeNull();
});

it('nothing of it goes while a run that repeats it goes on', async () => {
  await save(CHILD, ROOT, undefined, null);
  await bury(ROOT);
  expect(await sweptBy(async () => false)(ROOT)).toMatchObject({ open: true });
});

it('nothing goes of a run whose document is damaged, and others are swept', async () => {
  const runOf = sweptRuns({
    runs: { getAsOwner: () => Promise.reject(new SyntaxError('damaged')) },
    deleted: new DeletedRuns(store),
    isWithOwner: async () => false,
  });
  expect(await runOf(ROOT)).toMatchObject({ open: true });
});

describe('of a run that the store does not have', () => {
  it('nothing goes while its owner has it, or nobody says whether it does', async () => {
    expect(await sweptBy(async () => true)(ROOT)).toMatchObject({ open: true });
    expect(await sweptBy(() => Promise.reject(new Error('away')))(ROOT)).toMatchObject({ open: true });
    expect(await sweptBy(async () => false)(ROOT)).toBeNull();
  });

  it('the store is asked once more when its owner has it no longer: it may be there by now', async () => {
    const runOf = sweptBy(async () => {
      await save(ROOT, '', undefined, END);
      return false;
    });
    expect(await runOf(ROOT)).toMatchObject({ open: false, view: { stages: [{ artifacts: kept }] } });
  });

  it('the owner of its partition is asked which of its runs are open', async () => {
    const asked: unknown[] = [];
    const bus = (open: readonly string[], ok = true): Pick<Bus, 'requestRetrying'> => ({
      requestRetrying: async <Req, Rep>(subject: string, body: Req) => {
        asked.push(subject, body);
        return { ok, epoch: 1, open } as Rep;
      },
    });
    expect(await askOwner(bus([ROOT]), 4)(ROOT)).toBe(true);
    expect(await askOwner(bus([]), 4)(ROOT)).toBe(false);
    expect(await askOwner(bus([], false), 4)(ROOT)).toBe(true);
    expect(asked.slice(0, 2)).toEqual([subjects.owner(partitionOf(ROOT, 4), 'open'), { runIds: [ROOT] }]);
  });
});

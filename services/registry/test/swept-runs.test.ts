/** What the sweep of kept files knows of runs that are deleted (P30, P34). */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newRun, newRunId, planOf, viewOf, type RunCreated, type StageView } from '@penstock/run';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sweptRuns } from '../src/artifacts/swept-runs.ts';

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

it('a run that was never there, or that nobody repeats once it is deleted, names nothing', async () => {
  const runOf = sweptRuns(store);
  expect(await runOf(ROOT)).toBeNull();
  await bury(ROOT);
  expect(await runOf(ROOT)).toBeNull();
});

it('of a deleted run that stays which others have adopted, also over a deleted one; their own files are not its', async () => {
  const runOf = sweptRuns(store);
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
  expect(await sweptRuns(store)(ROOT)).toMatchObject({ open: true });
});

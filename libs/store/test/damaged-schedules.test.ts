/** Schedules whose documents are damaged, on SQLite; `mongodb-runs.test.ts` runs them on MongoDB. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ScheduleState } from '@penstock/run';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore, type Part } from '../src/index.ts';
import { schedulesSpec } from '../src/schedule-documents.ts';

const COUNT = 230;

describe('a schedule whose document is damaged', () => {
  let folder: string;
  let store: DocumentStore;
  let runs: RunsRepository;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-damaged-'));
    store = await openSqliteStore({
      path: join(folder, 'store.db'),
      collections: runCollections,
      synchronous: 'normal',
    });
    runs = new RunsRepository(store);
    await runs.saveSchedules(
      Array.from({ length: COUNT }, (_, index) => ({
        partition: 0,
        incarnation: 1,
        sequence: index,
        state: scheduleOf(idOf(index)),
      })),
    );
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  it.each<[damage: string, state: Part]>([
    ['is empty', ''],
    ['is cut off', '{"id":"'],
    ['is of no schedule', 'null'],
    ['has no lines', JSON.stringify({ ...scheduleOf(idOf(99)), lines: null })],
    ['is the one of another', JSON.stringify(scheduleOf(idOf(98)))],
  ])('keeps a take-over from none of the others where it %s', async (_, state) => {
    const schedules = store.collection(schedulesSpec);
    const stored = await schedules.get(idOf(99));
    if (stored === null) throw new Error('it was not saved');
    await schedules.replaceNewer([{ ...stored, incarnation: 2, state }]);
    const found = await Array.fromAsync(runs.schedulesOf(0));
    expect(found.map((one) => ('unreadable' in one ? one.id : one.state.id))).toEqual(
      Array.from({ length: COUNT }, (__, index) => idOf(index)),
    );
    expect(found.flatMap((one) => ('unreadable' in one ? one.id : []))).toEqual([idOf(99)]);
  });
});

function idOf(index: number): string {
  return `schedule-${String(index).padStart(3, '0')}`;
}

function scheduleOf(id: string): ScheduleState {
  return {
    id,
    tenant: 'service',
    key: 'service/o/r',
    provider: 'git_host_a',
    repository: 'o/r',
    ref: 'main',
    commit: 'c'.repeat(40),
    cloneUrl: 'https://host/o/r',
    source: 'nightly.yml',
    text: '',
    lines: [],
    idKey: 'k',
    delivery: { sequence: 1, storedAt: 1 },
  } as ScheduleState;
}

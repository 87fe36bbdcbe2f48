/** Lists of runs, with owner and store in the hands of the test. */
import { partitionOfKey, type RunView } from '@penstock/run';
import type { RunsReader } from '@penstock/store';
import { describe, expect, it } from 'vitest';
import { RunReads, type Owners } from '../src/index.ts';

function view(id: string, version: number, status: RunView['status']): RunView {
  return { id, version, status, tenant: 'ada', pipelineName: 'p', stages: [] } as unknown as RunView;
}

interface World {
  /** What the owner has, by id; the newest of them are what it lists. */
  readonly owned: ReadonlyMap<string, RunView>;
  readonly listed: readonly string[];
  readonly page: readonly RunView[];
  readonly stored?: ReadonlyMap<string, RunView>;
}

function reads({ owned, listed, page, stored = new Map() }: World): RunReads {
  const owners = {
    partitions: 4,
    partitionOf: () => partitionOfKey('ada', 4),
    get: (_partition: number, { runIds, newest }: { readonly runIds: readonly string[]; readonly newest?: number }) => {
      const ids = newest === undefined ? runIds : listed;
      return Promise.resolve({ ok: true, epoch: 1, runs: ids.flatMap((id) => owned.get(id) ?? []) });
    },
  };
  const store = {
    page: () => Promise.resolve(page),
    view: (id: string) => Promise.resolve(stored.get(id) ?? null),
  };
  return new RunReads(owners as unknown as Owners, store as unknown as RunsReader);
}

const shown = (views: readonly RunView[]): unknown => views.map(({ id, version }) => [id, version]);

describe('a page of runs (P22)', () => {
  it('has a run that the store shows as open as its owner has it, though it is not among the newest there', async () => {
    const owned = new Map([['a', view('a', 9, 'SUCCESS')]]);
    const page = [view('a', 4, 'RUNNING')];
    expect(
      shown((await reads({ owned, listed: [], page }).newest(['ada'], { limit: 5 })) as readonly RunView[]),
    ).toEqual([['a', 9]]);
  });

  it('has of two views the newer, whichever of the two says it', async () => {
    const owned = new Map([
      ['a', view('a', 2, 'RUNNING')],
      ['b', view('b', 7, 'RUNNING')],
    ]);
    const page = [view('b', 3, 'RUNNING'), view('a', 5, 'SUCCESS')];
    expect(shown(await reads({ owned, listed: ['a', 'b'], page }).newest(['ada'], { limit: 5 }))).toEqual([
      ['b', 7],
      ['a', 5],
    ]);
  });

  it('has the end of a run that has left its owner between the two questions', async () => {
    const stored = new Map([['a', view('a', 9, 'SUCCESS')]]);
    const page = [view('a', 4, 'RUNNING')];
    expect(shown(await reads({ owned: new Map(), listed: [], page, stored }).newest(['ada'], { limit: 5 }))).toEqual([
      ['a', 9],
    ]);
  });
});

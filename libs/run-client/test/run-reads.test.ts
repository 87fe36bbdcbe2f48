/** Lists of runs, with owner and store in the hands of the test. */
import { Unavailable } from '@penstock/errors';
import { newRunId, partitionOfKey, type RunView } from '@penstock/run';
import { StoreUnavailable, type RunsReader } from '@penstock/store';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RunReads, type Owners } from '../src/index.ts';

function view(id: string, version: number, status: RunView['status']): RunView {
  return { id, version, status, tenant: 'ada', pipelineName: 'p', stages: [] } as unknown as RunView;
}

const OWNER_MS_MAX = 10_000;

interface World {
  /** What the owner has, by id; the newest of them are what it lists. */
  readonly owned: ReadonlyMap<string, RunView>;
  readonly listed: readonly string[];
  readonly page: readonly RunView[];
  readonly stored?: ReadonlyMap<string, RunView>;
  /** How the store answers about one run; default: what it has. */
  readonly ask?: (id: string) => Promise<RunView | null>;
  /** The owner answers nobody; or nobody is there to be asked. */
  readonly owner?: 'silent' | 'gone';
}

function reads({ owned, listed, page, stored = new Map(), ask, owner }: World): RunReads {
  const owners = {
    partitions: 4,
    msMax: OWNER_MS_MAX,
    partitionOf: () => partitionOfKey('ada', 4),
    get: (_partition: number, { runIds, newest }: { readonly runIds: readonly string[]; readonly newest?: number }) => {
      if (owner === 'gone') return Promise.reject(new Unavailable('nobody is there'));
      if (owner === 'silent')
        return new Promise((_, reject) => setTimeout(() => reject(new Unavailable('no answer')), OWNER_MS_MAX));
      const ids = newest === undefined ? runIds : listed;
      return Promise.resolve({ ok: true, epoch: 1, runs: ids.flatMap((id) => owned.get(id) ?? []) });
    },
  };
  const store = {
    page: () => Promise.resolve(page),
    view: ask ?? ((id: string) => Promise.resolve(stored.get(id) ?? null)),
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

describe('one run while the store does not answer (RUNREADS-1)', () => {
  const id = newRunId({ now: 1_763_730_000_000, key: 'ada', random: new Uint8Array(8) });
  /** As the port says: every call settles within the store's deadline. */
  const frozen = (): Promise<never> =>
    new Promise((_, reject) => setTimeout(() => reject(new StoreUnavailable('store', 'no answer')), 10_000));

  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** What it comes to, and after how long. */
  async function read(world: Partial<World>): Promise<unknown> {
    const begun = performance.now();
    const answer = reads({ owned: new Map(), listed: [], page: [], ...world })
      .view(id, ['ada'])
      .then(
        (found) => found?.status ?? null,
        (error: Error) => error.name,
      )
      .then((came) => [came, Math.floor((performance.now() - begun) / 1_000)]);
    await vi.advanceTimersByTimeAsync(60_000);
    return await answer;
  }

  it('is answered by its owner after a moment where it lives', async () => {
    expect(await read({ owned: new Map([[id, view(id, 2, 'RUNNING')]]), ask: frozen })).toEqual(['RUNNING', 1]);
  });

  it('is unavailable within the time that an owner has where it does not', async () => {
    expect(await read({ ask: frozen })).toEqual(['Unavailable', 10]);
  });

  it('is asked for once more where the store says in time that it was away, or had no end of it', async () => {
    const answers: (() => Promise<RunView | null>)[] = [
      () => Promise.reject(new StoreUnavailable('store', 'locked')),
      () => Promise.resolve(view(id, 4, 'SUCCESS')),
    ];
    expect(await read({ ask: () => answers.shift()?.() ?? frozen() })).toEqual(['SUCCESS', 0]);
    answers.push(() => Promise.resolve(view(id, 2, 'RUNNING')), frozen);
    expect(await read({ ask: () => answers.shift()?.() ?? frozen() })).toEqual(['Unavailable', 10]);
  });

  it('has the end that a slow store had, also while its owner is away', async () => {
    const slow = (): Promise<RunView> =>
      new Promise((resolve) => setTimeout(() => resolve(view(id, 9, 'FAILED')), 4_000));
    expect(await read({ ask: slow })).toEqual(['FAILED', 4]);
    for (const owner of ['silent', 'gone'] as const) expect(await read({ ask: slow, owner })).toEqual(['FAILED', 4]);
  });

  it('is unavailable within that time while its owner is away too', async () => {
    const running = (): Promise<RunView> => Promise.resolve(view(id, 2, 'RUNNING'));
    for (const ask of [frozen, running]) expect(await read({ ask, owner: 'silent' })).toEqual(['Unavailable', 10]);
    expect(await read({ ask: running, owner: 'gone' })).toEqual(['Unavailable', 0]);
  });
});

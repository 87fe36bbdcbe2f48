import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  hookDeliveriesSpec,
  hooksSpec,
  hookStatesSpec,
  openSqliteStore,
  runCollections,
  RunsRepository,
  type DocumentStore,
  type NewHookDelivery,
} from '../src/index.ts';

describe('the outbox of webhooks', () => {
  let folder: string;
  let store: DocumentStore;
  let runs: RunsRepository;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-hooks-'));
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

  const delivery = (version: number, more: Partial<NewHookDelivery> = {}): NewHookDelivery => ({
    hook: 'h',
    run: 'r',
    version,
    event: 'stage.completed',
    body: JSON.stringify({ version }),
    createdAt: 1_000,
    ...more,
  });
  const addHook = async (id: string, tenant: string): Promise<void> => {
    const row = {
      id,
      tenant,
      url: 'https://a.example/',
      events: 'run.started,run.completed',
      repository: '',
      createdAt: 1,
    };
    await store.collection(hooksSpec).insert({ ...row, secret: 'sealed' });
  };

  it('P35: has each event of a run once, in their order, and what was marked stays marked', async () => {
    const all = Array.from({ length: 1_200 }, (_, index) => delivery(index + 1));
    await runs.addHookDeliveries(all.slice(0, 700));
    const deliveries = store.collection(hookDeliveriesSpec);
    const [first] = await deliveries.list({ where: { open: true, hook: 'h' }, limit: 1 });
    if (first === undefined) throw new RangeError('nothing waits');
    await deliveries.replaceNewer([{ ...first, open: false, taken: true, endedAt: 5, revision: 1 }]);
    // Again from the beginning, as after a crash before the checkpoint.
    await runs.addHookDeliveries(all);
    const waiting = await deliveries.list({ where: { open: true, hook: 'h' }, limit: 1_000, parts: [] });
    expect(waiting.map(({ runVersion }) => runVersion)).toEqual(all.slice(1, 1_001).map(({ version }) => version));
    expect(await runs.hookBacklog('h', { deliveries: 10_000, bytes: 1_000_000 })).toMatchObject({ deliveries: 1_199 });
    expect(await runs.hookBacklog('h', { deliveries: 1_000, bytes: 1_000_000 })).toMatchObject({ deliveries: 1_000 });
    expect(await runs.hookBacklog('other', { deliveries: 10, bytes: 10 })).toEqual({ deliveries: 0, bytes: 0 });
  });

  it('knows the webhooks of any number of tenants, but for those that are switched off', async () => {
    const tenants = Array.from({ length: 60 }, (_, index) => `user/${index}`);
    for (const tenant of tenants) await addHook(`of ${tenant}`, tenant);
    const state = { failingSince: 1, failures: 10, why: 'it answered 500', holder: '', revision: 1, step: 0 };
    await store.collection(hookStatesSpec).insert({ ...state, id: 'of user/7', switchedOffAt: 5 });
    await store.collection(hookStatesSpec).insert({ ...state, id: 'of user/8', switchedOffAt: 0 });
    const found = await runs.hooksOf([...tenants, 'service']);
    expect(found.map(({ tenant }) => tenant).toSorted()).toEqual(
      tenants.filter((tenant) => tenant !== 'user/7').toSorted(),
    );
    expect(found[0]).toMatchObject({ events: ['run.started', 'run.completed'], repository: '' });
    expect(await runs.hooksOf([])).toEqual([]);
  });
});

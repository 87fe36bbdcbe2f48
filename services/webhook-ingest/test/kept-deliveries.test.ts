/** What stays of deliveries that were decided about, in a real store. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore, type DocumentStore } from '@penstock/store';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DailyRoom } from '../src/model/daily-room.ts';
import type { Decision } from '../src/model/decision.ts';
import { DeliveriesRepository } from '../src/model/deliveries-repository.ts';
import type { Delivery } from '../src/model/delivery.ts';
import { ingestCollections } from '../src/index.ts';

const KIB = 1024;
const DAY_MS = 24 * 60 * 60_000;

let folder: string;
let store: DocumentStore;
let deliveries: DeliveriesRepository;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-deliveries-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: ingestCollections });
  deliveries = new DeliveriesRepository(store, 64 * KIB);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const delivery = (id: string, tenant: string, more: Partial<Delivery> = {}): Delivery => ({
  ...{ id, tenant, runId: `run-${id}`, deliveryId: id, provider: 'git_host_a', event: 'push', key: tenant },
  ...{ repository: 'acme/demo', ref: 'refs/heads/main', commit: 'c'.repeat(40), cloneUrl: 'https://h.example/d.git' },
  ...{ verified: 'connection', receivedAt: 1, answeredBy: 2, message: 'a change', paths: ['a'], bodySha256: '' },
  ...more,
});
const run = (yaml: string, more: Partial<Decision> = {}): Decision =>
  ({
    kind: 'run',
    pipelineName: 'demo',
    source: '.pipeline.yaml',
    trace: [],
    yaml,
    extensions: [],
    ...more,
  }) as Decision;

async function inserted(of: Delivery, decision: Decision): ReturnType<DeliveriesRepository['get']> {
  const standing = await deliveries.insert(of, decision);
  if (standing === null) throw new Error(`there is a delivery ${of.id} already`);
  await deliveries.carriedOut(standing, decision);
  return await deliveries.get(of.id);
}

describe('a decision that is carried out', () => {
  it('DECISION-3: keeps no long file, neither for its run nor for its schedule, and says all else', async () => {
    const yaml = '#'.repeat(10 * KIB);
    const schedule = { lines: [], source: '.pipeline.yaml', yaml, extensions: [] };
    const kept = await inserted(delivery('long', 'user/a'), run(yaml, { schedule }));
    expect(kept?.decision).toEqual({ ...run(''), yaml: null });
    expect(kept?.delivery).toEqual(delivery('long', 'user/a'));
  });

  it('DECISION-3: keeps no long file of a push from which only the schedule was read', async () => {
    const schedule = { lines: [], source: '.pipeline.yaml', yaml: '#'.repeat(10 * KIB), extensions: [] };
    const nothing: Decision = { kind: 'nothing', status: 'Skipped', source: 'none', trace: [] };
    const kept = await inserted(delivery('scheduled', 'user/a'), { ...nothing, schedule });
    expect(kept?.decision).toEqual(nothing);
  });

  it('is not written again where its file is short', async () => {
    const kept = await inserted(delivery('short', 'user/a'), run('a short file'));
    expect(kept).toMatchObject({ decision: run('a short file'), revision: 0 });
  });

  it('stands with its file until then, and a second decision is not kept', async () => {
    const yaml = '#'.repeat(10 * KIB);
    await deliveries.insert(delivery('first', 'user/a'), run(yaml));
    expect(await deliveries.insert(delivery('first', 'user/a'), run('another'))).toBeNull();
    expect((await deliveries.get('first'))?.decision).toEqual(run(yaml));
  });
});

describe('what is long of deliveries', () => {
  const long = (id: string, tenant: string): Delivery =>
    delivery(id, tenant, { paths: ['p'.repeat(40 * KIB)], message: `subject\n${'m'.repeat(4 * KIB)}` });

  it("DECISION-4: is kept while the tenant's day has room for it, then cut; another tenant's is kept", async () => {
    const [first, second, other] = [long('1', 'user/a'), long('2', 'user/a'), long('3', 'user/b')];
    expect((await inserted(first, run('')))?.delivery).toEqual(first);
    const cut = (await inserted(second, run('')))?.delivery;
    expect(cut).toEqual({ ...second, paths: null, message: second.message?.slice(0, 1_000) });
    expect((await inserted(other, run('')))?.delivery).toEqual(other);
  });

  it('DECISION-4: that is short is kept in any case', async () => {
    await inserted(long('1', 'user/a'), run(''));
    await inserted(long('2', 'user/a'), run(''));
    const short = delivery('3', 'user/a', { paths: ['src/a.ts', 'src/b.ts'] });
    expect((await inserted(short, run('')))?.delivery).toEqual(short);
  });
});

describe('the room of a day', () => {
  it('DAILYROOM-1: what is used comes back within a day, steadily', () => {
    let now = 0;
    const room = new DailyRoom(100, () => now);
    expect([room.take('a', 100), room.take('a', 1)]).toEqual([true, false]);
    now += DAY_MS / 2;
    expect([room.take('a', 51), room.take('a', 50), room.take('a', 1)]).toEqual([false, true, false]);
    now += 10 * DAY_MS;
    expect([room.take('a', 101), room.take('a', 100)]).toEqual([false, true]);
  });

  it('DAILYROOM-2: what does not fit uses nothing, nor does what others use', () => {
    const room = new DailyRoom(100, () => 0);
    expect([room.take('a', 101), room.take('b', 60), room.take('a', 100), room.take('b', 40)]).toEqual([
      false,
      true,
      true,
      true,
    ]);
  });
});

/** What stays of deliveries that were decided about, in a real store. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore, type DocumentStore } from '@penstock/store';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deliveriesSpec } from '../src/model/collections.ts';
import { DailyRoom } from '../src/model/daily-room.ts';
import type { Decision } from '../src/model/decision.ts';
import { DeliveriesRepository } from '../src/model/deliveries-repository.ts';
import { deliveryView } from '../src/model/delivery-view.ts';
import type { Delivery } from '../src/model/delivery.ts';
import { ingestCollections } from '../src/index.ts';
import { RefusedDeliveries } from '../src/intake/refused-deliveries.ts';
import { silentLog } from '@penstock/telemetry/log';

const KIB = 1024;
const DAY_MS = 24 * 60 * 60_000;

let folder: string;
let store: DocumentStore;
let deliveries: DeliveriesRepository;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-deliveries-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: ingestCollections });
  deliveries = new DeliveriesRepository(store, { long: 64 * KIB });
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

it('many long ones are read a few at a time: others have their turns in between', async () => {
  const roomy = new DeliveriesRepository(store);
  const paths = ['p'.repeat(300 * KIB)];
  for (const id of ['1', '2', '3', '4']) await roomy.insert(delivery(id, 'user/a', { paths }), run('x'));
  const happened: string[] = [];
  const parse = JSON.parse.bind(JSON);
  vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    if (text.length > 256 * KIB) happened.push('delivery');
    return parse(text) as unknown;
  });
  const turn = (): void => {
    happened.push('turn');
    if (turning) setImmediate(turn);
  };
  let turning = true;
  turn();
  expect(await roomy.newest(['user/a'], 100)).toHaveLength(4);
  turning = false;
  vi.restoreAllMocks();
  expect(happened.filter((each) => each === 'delivery')).toHaveLength(4);
  expect(happened.join(' ')).not.toContain('delivery delivery');
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

describe('DECISION-5: beyond what is kept whole of a tenant in a day', () => {
  const trace = (['verified', 'event', 'read', 'run'] as const).map((step) => ({
    step,
    passed: true,
    detail: 'd'.repeat(200),
  }));
  const decided = (more: Partial<Decision> = {}): Decision =>
    run('y'.repeat(2 * KIB), { trace, ...more } as Partial<Decision>);
  const push = (id: string, more: Partial<Delivery> = {}): Delivery =>
    delivery(id, 'user/a', { message: `subject ${'m'.repeat(900)}`, paths: ['src/a.ts'], ...more });
  const bytesOfAll = async (): Promise<number> => {
    const rows = await store.collection(deliveriesSpec).list({ limit: 1_000 });
    return rows.reduce((sum, row) => sum + JSON.stringify(row).length, 0);
  };

  beforeEach(() => {
    deliveries = new DeliveriesRepository(store, { rows: 64 * KIB, refused: 4 * KIB });
  });

  it('a push is kept without its trace, paths and file, is known again, and is replayed', async () => {
    for (let number = 0; number < 400; number++) await inserted(push(`p${number}`), decided());
    expect(await bytesOfAll()).toBeLessThan(64 * KIB + 400 * 1_200);
    const first = await deliveries.get('p0');
    expect(first?.decision).toEqual(decided());
    const last = await deliveries.get('p399');
    expect(last?.delivery).toEqual(push('p399', { paths: null, message: `subject ${'m'.repeat(92)}` }));
    expect(last?.decision).toEqual({ ...run(''), yaml: null, trace: trace.slice(-1), shortened: true });
    expect(await deliveries.insert(push('p399'), decided())).toBeNull();
    const [leftOut, ...kept] = deliveryView(last?.delivery as Delivery, last?.decision as Decision, 'run').trace;
    expect(leftOut?.detail).toContain('too many deliveries came in a day');
    expect(kept).toEqual(trace.slice(-1));
  });

  it('a push has its file until its run has it, and says what came of it instead', async () => {
    for (let number = 0; number < 40; number++) await deliveries.insert(push(`p${number}`), decided());
    const standing = await deliveries.get('p39');
    expect(standing?.decision).toEqual({ ...decided(), trace: trace.slice(-1), shortened: true });
    if (standing === null) return;
    const detail = 'the month is used up';
    const ended: Decision = {
      kind: 'ended',
      status: 'FAILED',
      reason: 'quota',
      pipelineName: 'demo',
      source: 'none',
      trace: [...trace, { step: 'run', passed: false, detail }],
    };
    await deliveries.carriedOut(standing, ended);
    expect((await deliveries.get('p39'))?.decision).toEqual({
      ...ended,
      trace: [{ step: 'run', passed: false, detail }],
      shortened: true,
    });
  });

  it("another tenant's are kept whole, and signed ones whatever comes unsigned", async () => {
    const unsigned = (id: string): Delivery => push(id, { tenant: 'service', verified: 'none' });
    for (let number = 0; number < 40; number++) await inserted(unsigned(`u${number}`), decided());
    expect((await deliveries.get('u39'))?.decision.shortened).toBe(true);
    for (const each of [push('signed', { tenant: 'service', verified: 'server' }), push('other')])
      expect(await inserted(each, decided())).toMatchObject({ delivery: each, decision: decided() });
  });

  it('what stands already, and what the store does not take, takes no room', async () => {
    for (let time = 0; time < 100; time++) await deliveries.insert(push('again'), decided());
    expect(await inserted(push('first'), decided())).toMatchObject({ decision: decided() });
    let isFull = true;
    let stored = 0;
    const insert = (): Promise<string> =>
      isFull ? Promise.reject(new Error('the disk is full')) : Promise.resolve('inserted').finally(() => (stored += 1));
    const failing = new DeliveriesRepository({ collection: () => ({ insert }) } as unknown as DocumentStore, {
      rows: 64 * KIB,
      long: 64 * KIB,
      refused: 8 * KIB,
    });
    const long = push('long', { paths: ['p'.repeat(8 * KIB)] });
    for (let time = 0; time < 100; time++) {
      await expect(failing.insert(long, decided())).rejects.toThrow('disk is full');
      await expect(failing.insertRefused(push('refused'), decided())).rejects.toThrow('disk is full');
    }
    isFull = false;
    expect(await failing.insert(long, decided())).toMatchObject({ delivery: long, decision: decided() });
    await failing.insertRefused(push('refused'), decided());
    expect(stored).toBe(2);
  });

  it('of refused ones nothing is kept, which takes no room of pushes', async () => {
    const nothing: Decision = { kind: 'nothing', status: 'Ignored', source: 'none', trace: trace.slice(1) };
    for (let number = 0; number < 40; number++)
      await deliveries.insertRefused(push(`r${number}`, { runId: '' }), nothing);
    expect(await bytesOfAll()).toBeLessThan(8 * KIB);
    expect(await deliveries.get('r0')).not.toBeNull();
    expect(await inserted(push('push'), decided())).toMatchObject({ decision: decided() });
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

  it('DAILYROOM-2: what is given back is there again', () => {
    const room = new DailyRoom(100, () => 0);
    expect(room.take('a', 100)).toBe(true);
    room.giveBack('a', 60);
    expect([room.take('a', 61), room.take('a', 60)]).toEqual([false, true]);
  });
});

it('what is refused is kept short, whatever its sender has said: one with long names leaves others their room', async () => {
  const told = Promise.withResolvers<void>();
  const noting = {
    insertRefused: async (...given: Parameters<DeliveriesRepository['insertRefused']>): Promise<void> => {
      await deliveries.insertRefused(...given);
      told.resolve();
    },
  };
  const refused = new RefusedDeliveries(noting as DeliveriesRepository, silentLog, () => 1);
  const long = 'x'.repeat(1_024 * KIB);
  const names = { repository: long, ref: long, commit: long, event: long, key: `service/${long}` };
  const message = `${long} is no address`;
  refused.add({ ...delivery('r', 'service', { verified: 'none' }), ...names }, 'Failed', 'address', message, {
    code: 'address_not_allowed',
    message,
  });
  await told.promise;
  const [row] = await store.collection(deliveriesSpec).list({ limit: 10 });
  expect(JSON.stringify(row).length).toBeLessThan(5 * KIB);
});

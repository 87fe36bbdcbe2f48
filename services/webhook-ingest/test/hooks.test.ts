/** Outgoing webhooks on a real broker and store, behind a real scheduler: from a commit to the receiver. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HookCalls, HookView } from '@penstock/bus';
import { callService } from '@penstock/service';
import { isRunId, newRunId } from '@penstock/run';
import { Owners } from '@penstock/run-client';
import { startReceiver, verified, type Receiver } from './receiver.ts';
import { makeWorld, type World } from './world.ts';

const TIMEOUT = { timeout: 30_000 };
const ALL = ['run.started', 'run.completed', 'stage.completed', 'approval.requested'];
const TWO_STAGES = textOf('two', { one: { run: 'true' }, two: { after: ['one'], run: 'true' } });
const ONE_STAGE = textOf('single', { a: { run: 'true' } });
const GATE = textOf('gated', { ask: { approval: {} }, deploy: { after: ['ask'], run: 'true' } });

/** YAML takes JSON. */
function textOf(name: string, stages: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ pipeline: { name }, stages });
}

let world: World;
let owners: Owners;
let receiver: Receiver;
const made: HookView[] = [];

beforeAll(async () => {
  world = await makeWorld();
  owners = new Owners(world.bus, 2);
}, 60_000);
afterAll(async () => {
  owners.close();
  await world.close();
});
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  for (const { id } of made.splice(0)) await ask('hooks.delete', { tenant: 'service', id });
  await receiver.close();
});

function ask<V extends keyof HookCalls>(verb: V, request: HookCalls[V]['request']): Promise<HookCalls[V]['answer']> {
  return callService(world.bus, 'webhook-ingest', verb, request);
}

async function createHook(more: Partial<HookCalls['hooks.create']['request']> = {}) {
  const hook = await ask('hooks.create', { tenant: 'service', url: receiver.url, events: ALL, ...more });
  made.push(hook);
  return hook;
}

async function startRun(yaml: string, tenant = 'service'): Promise<string> {
  const runId = newRunId({ now: Date.now(), key: tenant, random: randomBytes(16) });
  await owners.create({
    runId,
    tenant,
    key: tenant,
    yaml,
    priority: 0,
    origin: { kind: 'api' },
  });
  return runId;
}

const told = (runId: string): string[] =>
  receiver.received
    .filter(({ body }) => body.data.run.id === runId)
    .map(({ body: { type, data } }) => [type, ...data.stages.map(({ name }) => name)].join(' '));
const expectSoon = (what: () => unknown) => expect.poll(what, TIMEOUT);

describe('a webhook', () => {
  it('P35: is told of a run in the order of its events, each as the run then stood, signed by Standard Webhooks', async () => {
    await world.ingest();
    const { secret, id } = await createHook();
    expect(id).toSatisfy(isRunId, 'a UUIDv7');
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const runId = await startRun(TWO_STAGES);
    await expectSoon(() => told(runId)).toEqual([
      'run.started one two',
      'stage.completed one',
      'stage.completed two',
      'run.completed one two',
    ]);
    const [started, one, , completed] = receiver.received;
    expect(started?.body.data).toMatchObject({
      version: 1,
      run: { id: runId, status: 'PENDING', pipelineName: 'two' },
    });
    expect(one?.body.data).toMatchObject({ run: { status: 'RUNNING' }, stages: [{ name: 'one', status: 'SUCCESS' }] });
    expect(completed?.body.data).toMatchObject({ run: { status: 'SUCCESS', outcome: null, trigger: 'api' } });
    for (const each of receiver.received) {
      expect(verified(each, secret)).toEqual(each.body);
      expect(() => verified({ ...each, text: each.text.replace('two', 'tow') }, secret)).toThrow(
        'No matching signature',
      );
      expect(each.headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'penstock' });
      expect(each.headers['webhook-id']).not.toContain('.');
    }
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(4);
    expect(receiver.atOnce()).toBe(1);
    await expectSoon(async () => {
      const { deliveries } = await ask('hooks.deliveries', { tenant: 'service', id, limit: 10 });
      return deliveries.map(({ event, status, responseStatus, attempts }) => [event, status, responseStatus, attempts]);
    }).toEqual([
      ['run.completed', 'DELIVERED', 204, 1],
      ['stage.completed', 'DELIVERED', 204, 1],
      ['stage.completed', 'DELIVERED', 204, 1],
      ['run.started', 'DELIVERED', 204, 1],
    ]);
  });

  it('is told of what waits for people', async () => {
    await world.ingest();
    await createHook({ events: ['approval.requested'] });
    const runId = await startRun(GATE);
    await expectSoon(() => told(runId)).toEqual(['approval.requested ask']);
  });

  it('is told of the runs of its tenant, its repository and its events alone', async () => {
    await world.ingest();
    await createHook({ events: ['run.completed'] });
    await createHook({ events: ['run.completed'], repository: 'git_host_a/acme/other' });
    const other = await startRun(TWO_STAGES, 'user/ada');
    const runId = await startRun(TWO_STAGES);
    await expectSoon(() => told(runId)).toEqual(['run.completed one two']);
    expect(told(other)).toEqual([]);
    const { hooks } = await ask('hooks.list', { tenant: 'user/ada' });
    expect(hooks).toEqual([]);
    const [hook] = made;
    for (const tenant of ['user/ada', '']) {
      const id = hook?.id ?? '';
      await expect(ask('hooks.deliveries', { tenant, id, limit: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
      expect(await ask('hooks.delete', { tenant, id })).toEqual({ deleted: false });
      const { deliveries } = await ask('hooks.deliveries', { tenant: 'service', id, limit: 1 });
      await expect(ask('hooks.redeliver', { tenant, id: deliveries[0]?.id ?? '' })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    }
  });

  it('is told again what it did not take, with the same id, and nothing behind it before that', async () => {
    let now = Date.now();
    await world.ingest({ now: () => now });
    const { secret, id } = await createHook();
    receiver.answer = ({ body }) => (body.type === 'stage.completed' ? 500 : 200);
    const runId = await startRun(TWO_STAGES);
    const failing = () => ask('hooks.list', { tenant: 'service' }).then(({ hooks }) => hooks[0]?.lastError);
    await expectSoon(failing).toBe('it answered 500');
    expect(told(runId)).toEqual(['run.started one two', 'stage.completed one']);
    const other = await startRun(ONE_STAGE);
    await expectSoon(() => told(other)).toEqual(['run.started a', 'stage.completed a']);
    // Written down, and not only answered: an attempt that is written after the clock was set is due by that clock.
    await expectSoon(async () => {
      const { deliveries } = await ask('hooks.deliveries', { tenant: 'service', id, limit: 10 });
      return deliveries.filter(({ attempts, nextAttemptAt }) => attempts === 1 && nextAttemptAt !== null).length;
    }).toBe(2);
    receiver.answer = () => 200;
    now += 60_000;
    await expectSoon(() =>
      [...told(runId), ...told(other)].filter((event) => event.startsWith('run.completed')),
    ).toHaveLength(2);
    expect(told(runId)).toEqual([
      'run.started one two',
      'stage.completed one',
      'stage.completed one',
      'stage.completed two',
      'run.completed one two',
    ]);
    const [, first, second] = receiver.received.filter(({ body }) => body.data.run.id === runId);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.text).toBe(first?.text);
    for (const each of receiver.received) verified(each, secret);
    await expectSoon(failing).toBeNull();
    // By hand, whenever somebody wants it.
    const count = receiver.received.length;
    const { deliveries } = await ask('hooks.deliveries', { tenant: 'service', id, limit: 10 });
    const chosen = deliveries.find(({ runId: of, event }) => of === runId && event === 'run.started');
    const again = await ask('hooks.redeliver', { tenant: 'service', id: chosen?.id ?? '' });
    expect(again).toMatchObject({ status: 'WAITING', id: chosen?.id });
    await expectSoon(() => receiver.received.length).toBe(count + 1);
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(chosen?.id);
  });

  it('that only fails for three days is switched off and says so; what it takes when asked again switches it on', async () => {
    let now = Date.now();
    await world.ingest({ now: () => now });
    const { id } = await createHook();
    receiver.answer = () => 503;
    const runs = [];
    for (let index = 0; index < 12; index++) runs.push(await startRun(ONE_STAGE));
    await expectSoon(() => receiver.received.length).toBeGreaterThanOrEqual(12);
    now += 3 * 24 * 60 * 60 * 1_000 + 60_000;
    const hook = () => ask('hooks.list', { tenant: 'service' }).then(({ hooks }) => hooks[0]);
    await expectSoon(async () => (await hook())?.active).toBe(false);
    expect(await hook()).toMatchObject({ lastError: 'it answered 503', failingSince: expect.any(String) });
    const deliveries = () =>
      ask('hooks.deliveries', { tenant: 'service', id, limit: 100 }).then((answer) => answer.deliveries);
    await expectSoon(async () => (await deliveries()).filter(({ status }) => status !== 'DEAD')).toEqual([]);
    const silent = await startRun(ONE_STAGE);
    await expectSoon(async () => (await world.reads.view(silent, ['service']))?.status).toBe('SUCCESS');
    // Projected, and nothing of it in the outbox.
    await expectSoon(() => world.runs.view(silent, { tenants: ['service'] })).toMatchObject({ status: 'SUCCESS' });
    expect((await deliveries()).filter(({ runId }) => runId === silent)).toEqual([]);
    receiver.answer = () => 200;
    const [dead] = await deliveries();
    const { deliveries: all } = await ask('hooks.dead', { limit: 1_000 });
    expect(all.map((each) => each.id).toSorted()).toEqual((await deliveries()).map((each) => each.id).toSorted());
    expect(all[0]).toMatchObject({ tenant: 'service', url: expect.any(String), error: expect.any(String) });
    expect(await ask('hooks.redrive', { id: dead?.id ?? '' })).toMatchObject({ status: 'WAITING' });
    await expect(ask('hooks.redrive', { id: `${dead?.id}9` })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expectSoon(async () => await hook()).toMatchObject({ active: true, lastError: null, failingSince: null });
    const heard = await startRun(ONE_STAGE);
    await expectSoon(() => told(heard)).toHaveLength(3);
  });

  it('that answers 410 is switched off at once', async () => {
    await world.ingest();
    await createHook();
    receiver.answer = () => 410;
    await startRun(TWO_STAGES);
    await expectSoon(async () => (await ask('hooks.list', { tenant: 'service' })).hooks[0]?.active).toBe(false);
    expect(receiver.received).toHaveLength(1);
  });

  it('that redirects is not followed', async () => {
    await world.ingest();
    await createHook({ events: ['run.completed'] });
    const elsewhere = await startReceiver();
    receiver.answer = () => ({ status: 307, headers: { location: elsewhere.url } });
    await startRun(TWO_STAGES);
    await expectSoon(async () => (await ask('hooks.list', { tenant: 'service' })).hooks[0]?.lastError).toMatch(
      /redirect/,
    );
    expect(elsewhere.received).toEqual([]);
    await elsewhere.close();
  });
});

describe('senders', () => {
  it('two of them send each delivery once', async () => {
    await world.ingest();
    await world.ingest({ beside: true });
    await createHook();
    const runs = await Promise.all(Array.from({ length: 10 }, () => startRun(TWO_STAGES)));
    await expectSoon(() => runs.map((run) => told(run).length)).toEqual(runs.map(() => 4));
    for (const run of runs) expect(told(run)).toEqual([...told(run)].toSorted(byOrder));
    expect(receiver.received).toHaveLength(40);
    expect(receiver.atOnce()).toBe(1);
  });
});

const ORDER = ['run.started', 'stage.completed one', 'stage.completed two', 'run.completed'];
function byOrder(a: string, b: string): number {
  const place = (event: string): number => ORDER.findIndex((begin) => event.startsWith(begin));
  return place(a) - place(b);
}

import { randomBytes } from 'node:crypto';
import { GitError } from '@penstock/git';
import { Owners } from '@penstock/run-client';
import { callService } from '@penstock/service';
import { openDeliveryLog, type DeliveryView, type IngestCalls, type IngestVerb } from '@penstock/bus';
import { newRunId, runIdTime } from '@penstock/run';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { deliveriesSpec } from '../src/model/collections.ts';
import { DecidingAhead } from '../src/processing/deciding-ahead.ts';
import { githubPush, gitlabPush, makeRepository, pipelineText, type TestRepository } from './repository.ts';
import { makeWorld, type RunningIngest, type World } from './world.ts';

let world: World;
let repository: TestRepository;
let commit: string;
let push: Record<string, unknown>;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
  push = githubPush({ url: repository.url, commit });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});
afterEach(() => {
  world.held = false;
});

let count = 0;
const newId = (): string => `delivery-${(count += 1)}`;
const github = (id: string): Record<string, string> => ({ 'x-github-event': 'push', 'x-github-delivery': id });
const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> =>
  callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);
const deliveryOf = async (id: string): Promise<DeliveryView | null> =>
  (await call('delivery', { id, tenants: ['service'] })).delivery;

describe('the same delivery again', () => {
  it('answers the first result and starts nothing', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const first = await ingest.send(push, github(id));
    const runs = (await world.runsOf()).length;
    const again = await ingest.send(push, github(id));
    expect(again.body).toEqual(first.body);
    expect((await world.runsOf()).length).toBe(runs);
  });

  it('answers for the commit and the ref of the first one, whatever the second names', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const first = await ingest.send(push, github(id));
    const again = await ingest.send(
      githubPush({ url: repository.url, commit: 'c'.repeat(40), ref: 'refs/heads/other' }),
      github(id),
    );
    expect(again.body).toEqual(first.body);
  });

  it('a hundred times in parallel at two ingests: one run, whose id all are answered', async () => {
    const [one, two] = [await world.ingest(), await world.ingest({ beside: true })];
    const runs = (await world.runsOf()).length;
    const id = newId();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? one : two).send(push, github(id))),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect(new Set(answers.map(({ body }) => body['status']))).toEqual(new Set(['Success']));
    expect((await world.runsOf()).length).toBe(runs + 1);
  });

  it('P24: is known for seven days, and then no more', async () => {
    const [day, hour, minute] = [86_400_000, 3_600_000, 60_000];
    let now = Date.now();
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const ingest = await world.ingest({ now: () => now });
      const runId = (await ingest.send(push, github(newId()))).body.run_id ?? '';
      const rows = world.store.collection(deliveriesSpec);
      /** Looked at after a sweep, or while one goes on. */
      const isKept = async (id: string): Promise<boolean> => {
        vi.advanceTimersByTime(minute);
        return (await rows.get(id)) !== null;
      };
      await expect.poll(() => rows.list({ where: { runId }, limit: 1 }), { timeout: 10_000 }).toHaveLength(1);
      const [row] = await rows.list({ where: { runId }, limit: 1 });
      if (row === undefined) throw new Error('the delivery is decided');
      await rows.insert({ ...row, id: 'older', runId: '', deliveryId: '', receivedAt: row.receivedAt - 2 * hour });
      now = row.receivedAt + 7 * day - hour;
      await expect.poll(() => isKept('older'), { timeout: 10_000 }).toBe(false);
      expect(await isKept(row.id)).toBe(true);
      now += 2 * hour;
      await expect.poll(() => isKept(row.id), { timeout: 10_000 }).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is known after a restart, from the stream and from the store', async () => {
    const id = newId();
    const first = await (await world.ingest({ waitSecs: 0 })).send(push, github(id));
    expect(first.body).toMatchObject({ status: 'Pending', source: 'none', run_id: expect.any(String) });
    const restarted = await world.ingest();
    expect((await restarted.send(push, github(id))).body).toMatchObject({
      run_id: first.body.run_id,
      status: 'Success',
    });
    // As an hour later: what was processed is gone from the stream.
    await openDeliveryLog(world.bus).removeProcessed(Date.now() + 60_000);
    const runs = (await world.runsOf()).length;
    expect((await (await world.ingest()).send(push, github(id))).body).toMatchObject({
      run_id: first.body.run_id,
      status: 'Success',
    });
    expect((await (await world.ingest({ waitSecs: 0 })).send(push, github(id))).body).toEqual(first.body);
    expect((await world.runsOf()).length).toBe(runs);
  });

  it('that came while the store could not say so: the id that was answered becomes a run, and says that it was seen before', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const first = await ingest.send(push, github(id));
    await openDeliveryLog(world.bus).removeProcessed(Date.now() + 60_000);
    const log = openDeliveryLog(world.bus);
    const known = await world.store
      .collection(deliveriesSpec)
      .list({ where: { runId: String(first.body.run_id) }, limit: 1 });
    const delivery = JSON.parse(String(known[0]?.delivery)) as Record<string, unknown>;
    const runId = String(delivery['runId']).replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const decided = new Promise((resolve) =>
      world.bus.subscribe<{ runId: string }>(
        'ingest.decided',
        (message) => message.runId === runId && resolve(message),
      ),
    );
    await log.persist(String(delivery['id']), Buffer.from(JSON.stringify({ ...delivery, runId })), {
      lane: 'lane',
      host: 'host',
    });
    await decided;
    expect(await world.reads.view(runId, ['service'])).toMatchObject({ status: 'SKIPPED', stages: [] });
    expect(await deliveryOf(id)).toMatchObject({ runId: first.body.run_id });
  });
});

describe('a delivery that is processed again', () => {
  it('makes nothing new, and fails nothing, where its long file went with the carrying out (DECISION-3)', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const long = repository.commit({ '.pipeline.yaml': `${pipelineText('long')}# ${'x'.repeat(20_000)}\n` });
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: long }), github(id));
    const runId = String(body.run_id);
    const rows = world.store.collection(deliveriesSpec);
    const kept = async (): Promise<{ readonly delivery: string; readonly decision: string }> => {
      const [row] = await rows.list({ where: { runId }, limit: 1 });
      return { delivery: String(row?.delivery), decision: String(row?.decision) };
    };
    // It is answered when its run has ended, which may be before the last of its processing.
    await expect.poll(async () => (await kept()).decision.length, { timeout: 10_000 }).toBeLessThan(2_000);
    const runs = (await world.runsOf()).length;
    const again = new Promise<void>((resolve) =>
      world.bus.subscribe<{ runId: string }>('ingest.decided', (message) => message.runId === runId && resolve()),
    );
    const log = openDeliveryLog(world.bus);
    await log.removeProcessed(Date.now() + 60_000);
    const { delivery, decision } = await kept();
    await log.persist(String((JSON.parse(delivery) as Record<string, unknown>)['id']), Buffer.from(delivery), {
      lane: 'lane',
      host: 'host',
    });
    await again;
    expect(await kept()).toEqual({ delivery, decision });
    expect((await world.runsOf()).length).toBe(runs);
    expect(await deliveryOf(id)).toMatchObject({ runId, outcome: 'Run', pipelineName: 'long' });
    expect(await call('replay', { id, tenants: ['service'], dryRun: true })).toMatchObject({ outcome: 'Run' });
  });
});

describe('which deliveries are the same', () => {
  it('without an id every one counts', async () => {
    const ingest = await world.ingest();
    const ids = [
      await ingest.send(push, { 'x-github-event': 'push' }),
      await ingest.send(push, { 'x-github-event': 'push' }),
    ].map(({ body }) => body.run_id);
    expect(new Set(ids).size).toBe(2);
  });

  it("GitLab: two refs of one push with one event's id are two; the idempotency key goes before it", async () => {
    const ingest = await world.ingest();
    const event = { 'x-gitlab-event': 'Push Hook', 'x-gitlab-event-uuid': 'event-1' };
    const send = async (ref: string, headers: Record<string, string>) =>
      (await ingest.send(gitlabPush({ url: repository.url, commit, ref }), headers)).body.run_id;
    const [main, other, again] = [
      await send('refs/heads/main', event),
      await send('refs/heads/other', event),
      await send('refs/heads/main', event),
    ];
    expect(other).not.toBe(main);
    expect(again).toBe(main);
    const [key, sameKey] = [
      await send('refs/heads/main', { ...event, 'idempotency-key': 'k' }),
      await send('refs/heads/main', { 'x-gitlab-event': 'Push Hook', 'idempotency-key': 'k' }),
    ];
    expect(key).not.toBe(main);
    expect(sameKey).toBe(key);
  });

  it('one id for two repositories is two', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const [one, two] = [
      await ingest.send(push, github(id)),
      await ingest.send({ ...push, repository: { full_name: 'acme/fork', clone_url: repository.url } }, github(id)),
    ];
    expect(one.body.run_id).not.toBe(two.body.run_id);
  });
});

describe('a run id once answered becomes a run', () => {
  it.each([
    [
      'SKIPPED where there is no pipeline',
      () => githubPush({ url: repository.url, commit: repository.commit({ 'README.md': 'x' }) }),
      { status: 'SKIPPED', stages: [], pipelineName: 'acme/demo' },
    ],
    [
      'FAILED where the clone failed',
      () => githubPush({ url: 'file:///nonexistent', commit }),
      { status: 'FAILED', reason: 'checkout', stages: [] },
    ],
  ])('the run is %s', async (_name, payload, expected) => {
    const ingest = await world.ingest({ waitSecs: 0 });
    const id = newId();
    const { body } = await ingest.send(payload(), github(id));
    expect(body).toMatchObject({ accepted: true, status: 'Pending', source: 'none' });
    // Whoever sends it again and waits is answered when it is processed.
    await (await world.ingest()).send(payload(), github(id));
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject(expected);
  });

  it('also where it was answered because the clone took too long, and no pipeline was in it', async () => {
    const bare = repository.commit({ 'README.md': 'x' });
    const cloned = Promise.withResolvers<void>();
    const ingest = await world.ingest({
      waitSecs: 1,
      mirrors: {
        ...world.mirrors,
        fetch: async (request) => (await cloned.promise, await world.mirrors.fetch(request)),
      },
    });
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: bare }), github(newId()));
    expect(body).toMatchObject({ status: 'Pending', source: 'none', run_id: expect.any(String) });
    cloned.resolve();
    await expect
      .poll(async () => (await world.reads.view(body.run_id ?? '', ['service']))?.status, { timeout: 10_000 })
      .toBe('SKIPPED');
  });

  /** Its clock is set while a delivery is processed, as if another one processed it. */
  const ingestWithClock = async (waitSecs: number, aheadMs: number) => {
    const clock = { aheadMs: 0 };
    const fetch: typeof world.mirrors.fetch = (request) => {
      clock.aheadMs = aheadMs;
      return world.mirrors.fetch(request);
    };
    const now = (): number => Date.now() + clock.aheadMs;
    return { clock, ingest: await world.ingest({ waitSecs, now, mirrors: { ...world.mirrors, fetch } }) };
  };

  it('also where the clock of who processes it is behind that of who has answered', async () => {
    const bare = repository.commit({ 'README.md': 'x' });
    const { ingest } = await ingestWithClock(0, -3_600_000);
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: bare }), github(newId()));
    expect(body).toMatchObject({ status: 'Pending', run_id: expect.any(String) });
    await expect
      .poll(async () => (await world.reads.view(body.run_id ?? '', ['service']))?.status, { timeout: 10_000 })
      .toBe('SKIPPED');
  });

  it('and none comes of one whose sender still waits, where that clock is ahead', async () => {
    const bare = repository.commit({ 'README.md': 'x' });
    const { clock, ingest } = await ingestWithClock(20, 3_600_000);
    const runs = (await world.runsOf()).length;
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: bare }), github(newId()));
    expect(body).toMatchObject({ status: 'Skipped', run_id: null });
    clock.aheadMs = 0;
    // In its turn, behind that one.
    expect((await ingest.send(push, github(newId()))).body).toMatchObject({ status: 'Success' });
    expect((await world.runsOf()).length).toBe(runs + 1);
  });

  it('and none is answered to who sends it again while its sender still waits, whatever that server takes the time for', async () => {
    const bare = repository.commit({ 'README.md': 'x' });
    const [asked, cloned] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fetch: typeof world.mirrors.fetch = async (request) => {
      asked.resolve();
      await cloned.promise;
      return world.mirrors.fetch(request);
    };
    const mirrors = { ...world.mirrors, fetch };
    const first = await world.ingest({ waitSecs: 20, mirrors });
    const now = (): number => Date.now() + 3_600_000;
    const second = await world.ingest({ beside: true, waitSecs: 0, mirrors, now });
    const [payload, id] = [githubPush({ url: repository.url, commit: bare }), newId()];
    const answer = first.send(payload, github(id));
    await asked.promise;
    expect((await second.send(payload, github(id))).status).toBe(503);
    cloned.resolve();
    expect((await answer).body).toMatchObject({ status: 'Skipped', run_id: null });
    expect((await second.send(payload, github(id))).body).toMatchObject({ status: 'Skipped', run_id: null });
  });

  it('and none is answered by a server that stops before it knows: 503, and the delivery is there at the next start', async () => {
    const asked = Promise.withResolvers<void>();
    const stopping = await world.ingest({
      mirrors: { ...world.mirrors, fetch: () => (asked.resolve(), new Promise(() => {})) },
    });
    const id = newId();
    const runs = (await world.runsOf()).length;
    const answer = stopping.send(push, github(id));
    await asked.promise;
    const restarted = world.ingest();
    expect((await answer).status).toBe(503);
    expect((await (await restarted).send(push, github(id))).body).toMatchObject({ status: 'Success' });
    expect((await world.runsOf()).length).toBe(runs + 1);
  });

  it('its id carries the time of its persistence', async () => {
    const ingest = await world.ingest({ waitSecs: 0, now: () => 1_700_000_000_000 });
    const { body } = await ingest.send(push, github(newId()));
    expect(runIdTime(body.run_id ?? '')).toBe(1_700_000_000_000);
  });

  it('a run that goes on is answered as it stands when the time is over', async () => {
    const ingest = await world.ingest({ waitSecs: 4 });
    world.held = true;
    const { body } = await ingest.send(push, github(newId()));
    expect(body).toMatchObject({ status: 'Running', source: '.pipeline.yaml', run_id: expect.any(String) });
  });
});

describe('limits', () => {
  it('a repository of which too much waits is answered 503 with Retry-After', async () => {
    const ingest = await world.ingest({ waitingMax: { deliveries: 0, bytes: 0 } });
    const { status, headers, body } = await ingest.send(push, github(newId()));
    expect([status, body['error']]).toEqual([503, 'unavailable']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  });

  it("the tenant's month used up: a run that failed with the reason quota", async () => {
    const tiers = {
      limitsOf: () => ({
        pipelineRunLimit: 0,
        keySlots: 0,
        maxConcurrent: 1,
        logBytesMax: 1,
        retentionDays: 0,
        retentionRuns: 0,
        artifactStorageMb: 1,
        packageStorageMb: 1,
        canUsePrivateExtensions: false,
        canPublishExtensions: false,
      }),
    };
    const ingest = await world.ingest({ tenantTier: 'free', tiers });
    const { body } = await ingest.send(push, github(newId()));
    expect(body).toMatchObject({ status: 'Failed', run_id: expect.any(String), error: { code: 'quota' } });
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({ status: 'FAILED', reason: 'quota' });
  });
});

describe('decisions, for people', () => {
  it('say what let a push pass or held it back, and are found by any of their ids', async () => {
    const ingest = await world.ingest();
    const filtered = repository.commit({ '.pipeline.yaml': pipelineText('tagged', 'on:\n  push:\n    tags: [v*]\n') });
    const id = newId();
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: filtered }), github(id));
    const view = await deliveryOf(id);
    expect(view).toMatchObject({
      deliveryId: id,
      runId: body.run_id,
      outcome: 'Skipped',
      pipelineName: 'tagged',
      verified: 'none',
    });
    expect(view?.trace.at(-1)).toEqual({ step: 'matched', passed: false, detail: 'filtered by on.push.tags' });
    expect(await deliveryOf(view?.id ?? '')).toEqual(view);
    expect(await deliveryOf(body.run_id ?? '')).toEqual(view);
    expect((await call('deliveries', { tenants: ['service'], limit: 1 })).deliveries).toEqual([view]);
    expect((await call('delivery', { id, tenants: ['user/other'] })).delivery).toBeNull();
    expect((await call('deliveries', { tenants: ['user/other'], limit: 10 })).deliveries).toEqual([]);
  });

  it('of what was ignored are kept too', async () => {
    const ingest = await world.ingest();
    await ingest.send({ zen: 'x', repository: { full_name: 'acme/pinged' } }, { 'x-github-event': 'ping' });
    await expect
      .poll(async () => (await call('deliveries', { tenants: ['service'], limit: 1 })).deliveries[0], {
        timeout: 20_000,
      })
      .toMatchObject({ repository: 'acme/pinged', outcome: 'Ignored', runId: null });
  });

  it('a dry run decides anew and starts nothing; a replay is a run of its own', async () => {
    const ingest = await world.ingest();
    const id = newId();
    const { body } = await ingest.send(push, github(id));
    const runs = (await world.runsOf()).length;
    const dry = await call('replay', { id, tenants: ['service'], dryRun: true });
    expect(dry).toMatchObject({ outcome: 'Run', runId: null, pipelineName: 'demo' });
    expect((await world.runsOf()).length).toBe(runs);
    const replayed = await call('replay', { id, tenants: ['service'], dryRun: false });
    expect(replayed).toMatchObject({ outcome: 'Pending', replayOf: expect.any(String) });
    expect(replayed.runId).not.toBe(body.run_id);
    await expect
      .poll(async () => (await world.reads.view(replayed.runId ?? '', ['service']))?.status, { timeout: 20_000 })
      .toBe('SUCCESS');
    await expect(call('replay', { id, tenants: ['user/other'], dryRun: true })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

it('a run of which nothing came is repeated by its delivery, once for each id (P30)', async () => {
  const ingest = await world.ingest();
  const bad = repository.commit({ '.pipeline.yaml': 'stages: [' });
  const { body } = await ingest.send(githubPush({ url: repository.url, commit: bad }), github(newId()));
  const first = await world.reads.view(body.run_id ?? '', ['service']);
  expect(first).toMatchObject({ status: 'FAILED', reason: 'pipeline_file', stages: [] });
  const runId = newRunId({ now: Date.now(), key: first?.key ?? '', random: randomBytes(10) });
  const repeats = { run: first?.id ?? '', runId, actor: 'bob' };
  const ask = (): Promise<DeliveryView> =>
    call('replay', { id: repeats.run, tenants: ['service'], dryRun: false, repeats });
  const [one, two] = [await ask(), await ask()];
  expect([one.runId, two.runId, two.id]).toEqual([runId, runId, one.id]);
  await expect
    .poll(async () => (await world.reads.view(runId, ['service']))?.status, { timeout: 20_000 })
    .toBe('FAILED');
  expect(await world.reads.view(runId, ['service'])).toMatchObject({
    actor: 'bob',
    commit: bad,
    lineage: { parent: repeats.run, root: repeats.run },
    stages: [],
  });
});

it('of a lane the push behind one that becomes a run is decided about before that is created, once; any other in its turn', async () => {
  const commits = ['a', 'b', 'c', 'd', 'e'].map((digit) => digit.repeat(40));
  const [gone = '', , second = '', skipped] = commits;
  const held = { [gone]: Promise.withResolvers<void>(), [second]: Promise.withResolvers<void>() };
  const happened: string[] = [];
  const { create } = Owners.prototype;
  const creating = vi.spyOn(Owners.prototype, 'create').mockImplementation(function asked(this: Owners, request) {
    const { origin } = request;
    if (origin?.kind === 'webhook') happened.push(`create ${origin.commit?.[0]}`);
    return create.call(this, request);
  });
  const taking = vi.spyOn(DecidingAhead.prototype, 'take');
  try {
    const ingest = await world.ingest({
      waitSecs: 0,
      mirrors: {
        ...world.mirrors,
        fetch: async ({ commit: wanted }) => {
          happened.push(`fetch ${wanted[0]}`);
          await held[wanted]?.promise;
          if (wanted === gone) throw new GitError('not_found', 'no such commit');
          return world.mirrors.fetch({ url: repository.url, commit });
        },
      },
    });
    for (const each of commits) {
      const message = each === skipped ? 'typo [skip ci]' : 'a change';
      const pushed = githubPush({ url: repository.url, commit: each, message, repository: 'acme/ahead' });
      await ingest.send(pushed, github(newId()));
      // So that those behind it are read of the stream together: some of them might come after a read for the first.
      await vi.waitUntil(() => happened.includes('fetch a'), { timeout: 20_000 });
    }
    held[gone]?.resolve();
    // What is known for long is found anew: it is under way until its turn has come.
    await expect.poll(() => taking.mock.calls.at(-1)?.[1].commit, { timeout: 20_000 }).toBe(second);
    held[second]?.resolve();
    await expect.poll(() => happened.at(-1), { timeout: 20_000 }).toBe('create e');
    expect(happened).toEqual([
      ...['fetch a', 'create a'],
      ...['fetch b', 'fetch c', 'create b', 'create c'],
      ...['create d', 'fetch e', 'create e'],
    ]);
  } finally {
    for (const { resolve } of Object.values(held)) resolve();
    creating.mockRestore();
    taking.mockRestore();
  }
}, 60_000);

describe('trouble', () => {
  it('without a broker nothing is promised: 503; afterwards the same delivery is one run', async () => {
    const ingest: RunningIngest = await world.ingest();
    const id = newId();
    const runs = (await world.runsOf()).length;
    const gone = new Promise<void>((resolve) => world.bus.events.once('disconnected', () => resolve()));
    await world.broker.kill();
    await gone;
    expect((await ingest.send(push, github(id))).status).toBe(503);
    const back = new Promise<void>((resolve) => world.bus.events.once('reconnected', () => resolve()));
    await world.broker.restart();
    await back;
    await expect
      .poll(async () => (await ingest.send(push, github(id))).body['status'], { timeout: 30_000 })
      .toBe('Success');
    expect((await world.runsOf()).length).toBe(runs + 1);
  });
});

describe('poison', () => {
  it('what cannot be decided about is a run that failed, quarantined, and holds up nobody', async () => {
    const ingest = await world.ingest({
      mirrors: {
        ...world.mirrors,
        fetch: ({ url, commit: wanted }) =>
          url.endsWith('poison') ? Promise.reject(new TypeError('no')) : world.mirrors.fetch({ url, commit: wanted }),
      },
    });
    const poisoned = ingest.send(
      githubPush({ url: 'file:///poison', commit, repository: 'acme/poison' }),
      github(newId()),
    );
    expect((await ingest.send(push, github(newId()))).body).toMatchObject({ status: 'Success' });
    const { body } = await poisoned;
    expect(body).toMatchObject({ status: 'Failed', run_id: expect.any(String), error: { code: 'quarantined' } });
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({
      status: 'FAILED',
      reason: 'quarantined',
    });
  });
});

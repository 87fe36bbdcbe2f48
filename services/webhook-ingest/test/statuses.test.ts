import { hash, randomBytes } from 'node:crypto';
import { newRunId } from '@penstock/run';
import { silentLogger } from '@penstock/telemetry';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { statusesSpec } from '../src/model/collections.ts';
import type { StatusTarget } from '../src/statuses/host-api.ts';
import { StatusOutbox } from '../src/statuses/outbox.ts';
import { startFakeHost, type FakeHost } from './fake-host.ts';
import {
  githubPush,
  githubSignature,
  gitlabPush,
  makeRepository,
  pipelineText,
  type TestRepository,
} from './repository.ts';
import { makeWorld, type RunningIngest, type World } from './world.ts';

let world: World;
let repository: TestRepository;
let host: FakeHost;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
});
afterAll(async () => {
  await world.close();
  repository.remove();
});
beforeEach(async () => {
  host = await startFakeHost();
});
afterEach(async () => {
  world.held = false;
  await host.close();
});

const both = () => ({
  git_host_a: { apiUrl: host.url, token: 'token-a' },
  git_host_b: { apiUrl: `${host.url}/api/v4`, token: 'token-b' },
});
const newCommit = (name = 'demo'): string =>
  repository.commit({ '.pipeline.yaml': pipelineText(name) }, `change ${Math.random()}`);
const start = (options = {}): Promise<RunningIngest> =>
  world.ingest({
    secrets: { git_host_a: 's', git_host_b: 't' },
    statusHosts: both(),
    dashboardUrl: 'https://ci.example',
    ...options,
  });
const pushA = (ingest: RunningIngest, commit: string, name = 'acme/demo') => {
  const text = JSON.stringify(githubPush({ url: repository.url, commit, repository: name }));
  return ingest.send(text, { 'x-github-event': 'push', 'x-hub-signature-256': githubSignature(text, 's') });
};
/** Commits of a repository are in three lanes. */
function newCommitOfLane(commit: string): string {
  const laneOf = (of: string): number => hash('sha256', of, 'buffer').readUInt32BE(0) % 3;
  for (;;) {
    const other = newCommit();
    if (laneOf(other) === laneOf(commit)) return other;
  }
}
const undone = (limit: number) =>
  world.store
    .collection(statusesSpec)
    .list({ where: { done: false }, orderBy: { field: 'dueAt', direction: 'asc' }, limit });
const expectNoneLeft = () => expect.poll(async () => (await undone(10)).length, { timeout: 20_000 }).toBe(0);
/** The run of the last one that the host took. */
const lastTold = () => host.told.at(-1)?.body['target_url']?.split('/').at(-1);

describe('commit statuses', () => {
  it('GitHub is told what the run became, with the address of the run', async () => {
    const commit = newCommit();
    const { body } = await pushA(await start(), commit);
    await expectNoneLeft();
    const last = host.told.at(-1);
    expect(last).toMatchObject({
      path: `/repos/acme/demo/statuses/${commit}`,
      headers: { authorization: 'Bearer token-a' },
      body: { state: 'success', target_url: `https://ci.example/runs/${body.run_id}`, context: 'penstock/demo' },
    });
  });

  it('GitLab is told in its own words', async () => {
    const commit = newCommit();
    await (
      await start()
    ).send(gitlabPush({ url: repository.url, commit }), { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': 't' });
    await expectNoneLeft();
    expect(host.told.at(-1)).toMatchObject({
      path: `/api/v4/projects/acme%2Fdemo/statuses/${commit}`,
      headers: { 'private-token': 'token-b' },
      body: { state: 'success', name: 'penstock/demo', ref: 'main' },
    });
  });

  it('a run that goes on is pending, and what it becomes follows, never the other way round', async () => {
    const ingest = await start({ waitSecs: 0 });
    world.held = true;
    const commit = newCommit();
    const { body } = await pushA(ingest, commit);
    await expect.poll(() => host.statesOf(commit), { timeout: 10_000 }).toEqual(['pending']);
    await expect.poll(() => world.jobs.some(({ runId }) => runId === body.run_id)).toBe(true);
    world.release();
    await expect.poll(() => host.statesOf(commit), { timeout: 10_000 }).toEqual(['pending', 'success']);
  });

  it('a clone that failed is a failure', async () => {
    const commit = 'c'.repeat(40);
    await pushA(await start(), commit);
    await expectNoneLeft();
    expect(host.statesOf(commit)).toEqual(['failure']);
  });

  it.each(['acme/../../x', '..', './x'])(
    'a repository that is named %s sends the token to no other place of the API',
    async (name) => {
      const commit = newCommit();
      const text = JSON.stringify(githubPush({ url: repository.url, commit, repository: name }));
      const { body } = await (
        await start()
      ).send(text, { 'x-github-event': 'push', 'x-hub-signature-256': githubSignature(text, 's') });
      expect(body).toMatchObject({ status: 'Success' });
      await expectNoneLeft();
      expect(host.told).toEqual([]);
    },
  );

  it('a host that is away, slow to be pleased or over its limits has the final one in the end', async () => {
    const ingest = await start();
    host.answers.push({ status: 502 }, { status: 429, headers: { 'retry-after': '1' } });
    const commit = newCommit();
    await pushA(ingest, commit);
    await expectNoneLeft();
    expect(host.statesOf(commit).at(-1)).toBe('success');
  });

  it('what was not told before a restart is told after it, once it is final, by one of two', async () => {
    const commit = newCommit();
    host.answers.push({ status: 503 }, { status: 401 });
    await pushA(await start(), commit);
    await start();
    await start({ beside: true });
    await expectNoneLeft();
    expect(host.statesOf(commit)).toEqual(['success']);
  });

  it('a host that will never take it is not asked for ever', async () => {
    const ingest = await start();
    host.answers.push({ status: 404 }, { status: 422 });
    const commit = newCommit();
    await pushA(ingest, commit);
    await expectNoneLeft();
  });

  it('STATUS-4: a tenant with hundreds to be told, at a host that hangs on them, delays nobody else, nor what others have left', async () => {
    const entries = world.store.collection(statusesSpec);
    const left = (lane: string, tenant: string, name: string, index: number, dueAt: number) => {
      const runId = `01990000-0000-7000-8000-${String(index).padStart(12, '0')}`;
      const target = {
        provider: 'git_host_a',
        repository: name,
        commit: `${index}`.padStart(40, '0'),
        ref: 'r',
        runId,
      };
      return {
        id: runId,
        lane,
        done: false,
        dueAt,
        claimedUntil: 0,
        sent: '',
        failures: 0,
        revision: 0,
        step: 0,
        target,
        tenant,
      };
    };
    const rows = [
      ...Array.from({ length: 400 }, (_, index) =>
        left(`lane${index % 40}`, 'user/many', `many/${index % 40}`, index, 1),
      ),
      left('zz', 'user/other', 'other/one', 900, 2),
      // By an earlier release, which knew no lanes.
      left('', 'user/earlier', 'earlier/one', 901, 2),
    ];
    for (const { target, tenant, ...row } of rows)
      await entries.insert({ ...row, target: JSON.stringify({ ...target, tenant, context: 'c' }) });
    const hold = host.hold('/repos/many/');
    const ingest = await start();
    await expect.poll(hold.held, { timeout: 20_000 }).toBeGreaterThanOrEqual(3);
    const commit = newCommit();
    await pushA(ingest, commit);
    await expect.poll(() => host.statesOf(commit).at(-1), { timeout: 30_000 }).toBe('success');
    await expect.poll(() => host.statesOf('900'), { timeout: 30_000 }).toEqual(['pending']);
    await expect.poll(() => host.statesOf('901'), { timeout: 30_000 }).toEqual(['pending']);
    expect(host.told.filter(({ path }) => path.startsWith('/repos/many/'))).toEqual([]);
    const closed = ingest.close();
    hold.release();
    await closed;
    for (const { id } of await undone(1_000)) await entries.delete(id);
  }, 90_000);

  it('STATUS-5: a commit at which the host hangs delays its own other run, and no other commit of its repository', async () => {
    const commits = Array.from({ length: 12 }, () => newCommit());
    const [slow = '', ...others] = commits;
    const hold = host.hold(`/repos/acme/slow/statuses/${slow}`);
    const ingest = await start();
    await pushA(ingest, slow, 'acme/slow');
    await expect.poll(hold.held, { timeout: 20_000 }).toBe(1);
    for (const commit of [slow, ...others]) await pushA(ingest, commit, 'acme/slow');
    const told = (): number => others.filter((commit) => host.statesOf(commit).at(-1) === 'success').length;
    // Those of the other two lanes: that there are none of them is one chance in 100,000.
    await expect.poll(told, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(hold.held()).toBe(1);
    hold.release();
    await expect.poll(told, { timeout: 20_000 }).toBe(others.length);
    await expectNoneLeft();
    expect(host.statesOf(slow).slice(-2)).toEqual(['success', 'success']);
  });

  it('STATUS-6: an older run whose status the host takes late does not stand over the newer one of its commit', async () => {
    const ingest = await start({ waitSecs: 0 });
    world.held = true;
    const commit = newCommit();
    host.answers.push({ status: 429, headers: { 'retry-after': '3' } });
    const older = await pushA(ingest, commit);
    await expect.poll(() => host.answers.length, { timeout: 10_000 }).toBe(0);
    const newer = await pushA(ingest, commit);
    await expect
      .poll(() => world.jobs.some(({ runId }) => runId === newer.body.run_id), { timeout: 10_000 })
      .toBe(true);
    world.held = false;
    world.release();
    await expectNoneLeft();
    expect(host.statesOf(commit).at(-1)).toBe('success');
    expect(lastTold()).toBe(newer.body.run_id);
    expect(older.body.run_id).not.toBe(newer.body.run_id);
  });

  it('STATUS-6: while one ingest tells of the older run no other tells of the newer, which is told next', async () => {
    const commit = newCommit();
    const hold = host.hold(`/repos/acme/demo/statuses/${commit}`);
    await pushA(await start(), commit);
    await expect.poll(hold.held, { timeout: 10_000 }).toBe(1);
    const beside = await start({ beside: true });
    const newer = await pushA(beside, commit);
    // What comes behind it in the same lane is told of.
    const other = newCommitOfLane(commit);
    await pushA(beside, other);
    await expect.poll(() => host.statesOf(other).at(-1), { timeout: 20_000 }).toBe('success');
    expect(hold.held()).toBe(1);
    hold.release();
    await expectNoneLeft();
    expect(lastTold()).toBe(newer.body.run_id);
  });

  it('STATUS-6: an older run that is added after the newer was told, and a restart, is not told', async () => {
    await (await start()).close();
    const target = (runId: string, ref = 'refs/heads/main', provider: 'git_host_a' | 'git_host_b' = 'git_host_a') => ({
      provider,
      ref,
      runId,
      repository: 'acme/late',
      commit: 'd'.repeat(40),
      tenant: 'service',
      context: 'penstock/demo',
    });
    const [oldest = '', older = '', newest = ''] = (await world.runsOf()).map(({ id }) => id).toSorted();
    const told = async (...targets: StatusTarget[]): Promise<(string | undefined)[]> => {
      const outbox = new StatusOutbox({
        ...world,
        hosts: both(),
        log: silentLogger(),
        now: Date.now,
        targetOf: () => undefined,
        urlOfRun: (runId) => `https://ci.example/runs/${runId}`,
      });
      outbox.start();
      const before = host.told.length;
      for (const each of targets) {
        await outbox.add(each);
        await expectNoneLeft();
      }
      await outbox.stop();
      return host.told.slice(before).map(({ body }) => body['target_url']?.split('/').at(-1));
    };
    expect(await told(target(older))).toEqual([older]);
    expect(await told(target(oldest), target(older))).toEqual([]);
    expect(await told(target(newest), target(older))).toEqual([newest]);
    // GitLab shows those of other refs beside it.
    expect(await told(target(newest, 'refs/heads/a', 'git_host_b'))).toEqual([newest]);
    expect(await told(target(older, 'refs/heads/b', 'git_host_b'))).toEqual([older]);
  });

  /** As left in the outbox, of a run that has ended, to be told once it is due. */
  const leftOf = (
    runId: string,
    commit: string,
    changes: { dueAt: number; claimedUntil?: number; failures?: number },
  ) => ({
    id: commit,
    lane: commit,
    done: false,
    claimedUntil: 0,
    sent: '',
    failures: 0,
    revision: 0,
    step: 0,
    target: JSON.stringify({
      provider: 'git_host_a',
      ref: 'r',
      runId,
      repository: 'acme/ahead',
      commit,
      tenant: 'service',
      context: 'c',
    }),
    ...changes,
  });
  const endedRun = async (): Promise<string> => {
    const ingest = await start();
    await pushA(ingest, newCommit());
    await expectNoneLeft();
    await ingest.close();
    const [{ id } = { id: '' }] = await world.runsOf();
    return id;
  };
  const startOutbox = (
    bootNow?: () => number,
    reads = world.reads,
    { hosts = both(), aheadMs = 0 } = {},
  ): StatusOutbox => {
    const outbox = new StatusOutbox({
      ...world,
      reads,
      hosts,
      log: silentLogger(),
      now: () => Date.now() + aheadMs,
      bootNow,
      targetOf: () => undefined,
      urlOfRun: (run) => `https://ci.example/runs/${run}`,
    });
    outbox.start();
    return outbox;
  };

  it('STATUS-1: what was looked at so long ago that the claim may be over is not told: another may have told what came after it', async () => {
    const runId = await endedRun();
    let boot = 0;
    let looks = 0;
    const view: typeof world.reads.view = async (...run) => {
      const found = await world.reads.view(...run);
      looks += 1;
      if (looks > 1 || found === null) return found;
      // It goes on then, and this process stands still for half a minute.
      boot += 30_000;
      return { ...found, status: 'RUNNING' };
    };
    const reads = Object.assign(Object.create(world.reads) as typeof world.reads, { view });
    const outbox = startOutbox(() => boot, reads);
    const commit = '4'.repeat(40);
    const { target } = leftOf(runId, commit, { dueAt: 0 });
    await outbox.add(JSON.parse(target) as StatusTarget);
    await expectNoneLeft();
    expect(host.statesOf(commit)).toEqual(['success']);
    await outbox.stop();
  });

  it('STATUS-1: what the host takes late of one ingest is told over, where another whose clock is ahead has told the end meanwhile', async () => {
    const runId = await endedRun();
    let looks = 0;
    const view: typeof world.reads.view = async (...run) => {
      const found = await world.reads.view(...run);
      looks += 1;
      // It ends right after the first look.
      return looks > 1 || found === null ? found : { ...found, status: 'RUNNING' };
    };
    const reads = Object.assign(Object.create(world.reads) as typeof world.reads, { view });
    const hold = host.hold('/slow/');
    const slow = startOutbox(undefined, reads, {
      hosts: { ...both(), git_host_a: { apiUrl: `${host.url}/slow`, token: 'token-a' } },
    });
    const commit = '5'.repeat(40);
    const { target } = leftOf(runId, commit, { dueAt: 0 });
    await slow.add(JSON.parse(target) as StatusTarget);
    await expect.poll(hold.held, { timeout: 20_000 }).toBe(1);
    const ahead = startOutbox(undefined, world.reads, { aheadMs: 60 * 60_000 });
    await expect.poll(() => host.statesOf(commit), { timeout: 20_000 }).toEqual(['success']);
    hold.release();
    await expect.poll(() => host.statesOf(commit).slice(1, 3), { timeout: 20_000 }).toEqual(['pending', 'success']);
    await expectNoneLeft();
    expect(host.statesOf(commit).at(-1)).toBe('success');
    await slow.stop();
    await ahead.stop();
  });

  it('STATUS-7: what an ingest whose clock is ahead had claimed when it died is told once that claim has stood for its length', async () => {
    const runId = await endedRun();
    const entries = world.store.collection(statusesSpec);
    const ahead = Date.now() + 60 * 60_000;
    const claimed = (commit: string, until: number) => leftOf(runId, commit, { dueAt: until, claimedUntil: until });
    const [left, living] = [claimed('e'.repeat(40), ahead), claimed('f'.repeat(40), ahead - 1)];
    for (const entry of [left, living]) await entries.insert(entry);
    let boot = 0;
    let asked = 0;
    const outbox = startOutbox(() => {
      asked += 1;
      return boot;
    });
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(4);
    await entries.replaceNewer([{ ...living, revision: 1 }]);
    boot += 30_001;
    await expect.poll(() => host.statesOf(left.id).at(-1), { timeout: 20_000 }).toBe('success');
    expect(await entries.get(living.id)).toMatchObject({ revision: 1, claimedUntil: ahead - 1 });
    await outbox.stop();
    await entries.delete(living.id);
  });

  it('STATUS-7: what an ingest whose clock is ahead was to look at later is told once it has stood for as long as nobody puts one off', async () => {
    const runId = await endedRun();
    const entries = world.store.collection(statusesSpec);
    const minutes = (count: number): number => count * 60_000;
    const dueIn = (commit: string, ms: number, failures: number) =>
      leftOf(runId, commit.repeat(40), { dueAt: Date.now() + ms, failures });
    const running = dueIn('1', minutes(60), 0);
    const putOff = dueIn('2', minutes(50), 1);
    const putOffAhead = dueIn('3', minutes(119), 1);
    for (const entry of [running, putOff, putOffAhead]) await entries.insert(entry);
    let boot = 0;
    let asked = 0;
    const outbox = startOutbox(() => {
      asked += 1;
      return boot;
    });
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0);
    boot += minutes(5) + 1;
    await expect.poll(() => host.statesOf(running.id).at(-1), { timeout: 20_000 }).toBe('success');
    for (const { id } of [putOff, putOffAhead]) expect(await entries.get(id)).toMatchObject({ revision: 0 });
    boot += minutes(55);
    await expect.poll(() => host.statesOf(putOffAhead.id).at(-1), { timeout: 20_000 }).toBe('success');
    // The other that was put off is told beside it; what has not begun a stop leaves.
    await expectNoneLeft();
    await outbox.stop();
  });

  it('a run that nobody knows any more, and one whose host is not configured any more, are given up after a week', async () => {
    await (await start()).close();
    let clock = Date.now();
    const outboxOf = (hosts: ConstructorParameters<typeof StatusOutbox>[0]['hosts']): StatusOutbox =>
      new StatusOutbox({
        ...world,
        hosts,
        reads: Object.assign(Object.create(world.reads) as typeof world.reads, { view: async () => null }),
        log: silentLogger(),
        now: () => clock,
        targetOf: () => undefined,
        urlOfRun: (runId) => `https://ci.example/runs/${runId}`,
      });
    const targetOf = (provider: 'git_host_a' | 'git_host_b'): StatusTarget => ({
      provider,
      ref: 'r',
      runId: newRunId({ now: clock, key: 'k', random: randomBytes(16) }),
      repository: 'acme/deleted',
      commit: newCommit(),
      tenant: 'service',
      context: 'penstock/demo',
    });
    const outbox = outboxOf(both());
    outbox.start();
    for (const provider of ['git_host_a', 'git_host_b'] as const) await outbox.add(targetOf(provider));
    await expect.poll(() => host.told.length, { timeout: 10_000 }).toBe(2);
    await outbox.stop();
    clock += 8 * 24 * 60 * 60_000;
    const { git_host_a: only } = both();
    const later = outboxOf({ git_host_a: only });
    later.start();
    await expectNoneLeft();
    await later.stop();
    expect(host.told).toHaveLength(2);
  });

  it('nothing is told for skipped pushes, without a token, or for unsigned ones in production', async () => {
    // An ingest that is new tells the last one of a repository once more.
    await pushA(await start(), repository.commit({ 'README.md': 'x' }), 'acme/quiet');
    const mirrors = { fetch: ({ commit }: { commit: string }) => world.mirrors.fetch({ url: repository.url, commit }) };
    const production = await start({ mode: 'production', allowedHosts: ['git.example'], secrets: {}, mirrors });
    const { body } = await production.send(
      githubPush({ url: 'https://git.example/acme/demo.git', commit: newCommit() }),
      { 'x-github-event': 'push' },
    );
    expect(body).toMatchObject({ status: 'Success' });
    await pushA(await start({ statusHosts: {} }), newCommit(), 'acme/quiet');
    await expectNoneLeft();
    expect(host.told).toEqual([]);
  });
});

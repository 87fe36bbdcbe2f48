import type { IngestCalls, IngestVerb } from '@penstock/bus';
import { GitError } from '@penstock/git';
import { isRunId } from '@penstock/run';
import { answerCalls, callService } from '@penstock/service';
import { connectionIdOf } from '@penstock/store';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ingestCalls, type CallsOptions } from '../src/calls.ts';
import { connectionsSpec, proofsSpec } from '../src/model/collections.ts';
import { ConnectionsRepository } from '../src/model/connections-repository.ts';
import { ingestKeys } from '../src/model/delivery.ts';
import {
  githubPush,
  githubSignature,
  gitlabPush,
  makeRepository,
  pipelineText,
  type TestRepository,
} from './repository.ts';
import { JWT_SECRET, makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

let world: World;
let repository: TestRepository;
let commit: string;
let ingest: RunningIngest;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
  answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});
beforeEach(async () => {
  ingest = await world.ingest();
});

const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> =>
  callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);

let count = 0;
const signed = (payload: Record<string, unknown>, secret: string, to = ingest): Promise<Answer> => {
  const text = JSON.stringify(payload);
  return to.send(text, {
    'x-github-event': 'push',
    'x-github-delivery': `c${(count += 1)}`,
    'x-hub-signature-256': githubSignature(text, secret),
  });
};
const push = (name: string): Record<string, unknown> => githubPush({ url: repository.url, commit, repository: name });

describe('a connected repository', () => {
  it('its secret is shown once, and what is signed with it belongs to its user', async () => {
    const connected = await call('connect', { userId: 'u1', provider: 'git_host_a', repository: 'acme/owned' });
    expect(connected).toMatchObject({
      id: expect.toSatisfy(isRunId, 'a UUIDv7'),
      provider: 'git_host_a',
      repository: 'acme/owned',
      webhookUrl: 'http://ci.example/webhook',
      secret: expect.stringMatching(/^.{40,}$/u),
    });
    const { repositories } = await call('connections', { userId: 'u1' });
    expect(repositories).toMatchObject([{ id: connected.id, repository: 'acme/owned' }]);
    expect(JSON.stringify(repositories)).not.toContain(connected.secret);

    const { body } = await signed(push('acme/owned'), connected.secret);
    expect(body).toMatchObject({ status: 'Success' });
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toBeNull();
    expect(await world.reads.view(body.run_id ?? '', ['user/u1'])).toMatchObject({ tenant: 'user/u1', key: 'user/u1' });
    expect(world.jobs.at(-1)?.origin).toMatchObject({ trusted: true });
    expect((await call('deliveries', { tenants: ['user/u1'], limit: 5 })).deliveries).toMatchObject([
      { verified: 'connection', runId: body.run_id },
    ]);
  });

  it('its deliveries count for its user, however many others come from the same address, and leave that its budget', async () => {
    const limited = await world.ingest({ aMinute: 3, waitSecs: 0 });
    const [flooding, other] = await Promise.all(
      ['u20', 'u21'].map((userId) => call('connect', { userId, provider: 'git_host_a', repository: 'acme/busy' })),
    );
    const send = async (secret = ''): Promise<number> => (await signed(push('acme/busy'), secret, limited)).status;
    const statuses: number[] = [];
    for (let count = 0; count < 5; count += 1) statuses.push(await send(flooding?.secret));
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    const refused = await signed(push('acme/busy'), flooding?.secret ?? '', limited);
    expect(refused.body).toMatchObject({ error: 'rate_limited', message: expect.stringContaining('yours') });
    expect(refused.headers).toMatchObject({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '0',
      'retry-after': expect.stringMatching(/^[1-9]\d?$/u),
    });
    expect(await send(other?.secret)).toBe(200);
    // What is nobody's counts for the address.
    expect([await send('wrong'), await send('wrong'), await send('wrong'), await send('wrong')]).toEqual([
      200, 200, 200, 429,
    ]);
  });

  it('two users may connect the same one: the secret tells whose delivery it is, also with one id', async () => {
    const secrets = await Promise.all(
      ['u2', 'u3'].map(
        async (userId) => (await call('connect', { userId, provider: 'git_host_b', repository: 'acme/shared' })).secret,
      ),
    );
    const answers = [];
    for (const token of secrets) {
      answers.push(
        await ingest.send(gitlabPush({ url: repository.url, commit, repository: 'acme/shared' }), {
          'x-gitlab-event': 'Push Hook',
          'x-gitlab-event-uuid': 'one',
          'x-gitlab-token': token,
        }),
      );
    }
    expect(await world.reads.view(answers[0]?.body.run_id ?? '', ['user/u2'])).toMatchObject({ status: 'SUCCESS' });
    expect(await world.reads.view(answers[1]?.body.run_id ?? '', ['user/u3'])).toMatchObject({ status: 'SUCCESS' });
  });

  it('LANE-4: as many as somebody connects, at as many hosts that do not answer, keep no push of another from its turn', async () => {
    const tarpits: string[] = [];
    const released = Promise.withResolvers<void>();
    const held = await world.ingest({
      mirrors: {
        ...world.mirrors,
        fetch: async (request) => {
          if (!request.url.includes('tarpit')) return await world.mirrors.fetch(request);
          tarpits.push(request.url);
          await released.promise;
          throw new GitError('timeout', 'no answer');
        },
      },
      waitSecs: 1,
    });
    const waiting = Array.from({ length: 40 }, async (_, index) => {
      const name = `evil/${index}`;
      const { secret } = await call('connect', { userId: 'evil', provider: 'git_host_a', repository: name });
      const url = `https://tarpit${index}.example/${name}.git`;
      return await signed(githubPush({ url, commit, repository: name }), secret, held);
    });
    for (const { body } of await Promise.all(waiting)) expect(body).toMatchObject({ status: 'Pending' });
    const { secret } = await call('connect', { userId: 'good', provider: 'git_host_a', repository: 'good/one' });
    const { body } = await signed(push('good/one'), secret, held);
    await expect
      .poll(() => world.reads.view(body.run_id ?? '', ['user/good']), { timeout: 10_000 })
      .toMatchObject({ status: 'SUCCESS' });
    expect(tarpits).toHaveLength(8);
    released.resolve();
    await held.close();
  });

  it('its secret signs for no other repository, nor does another secret for it', async () => {
    const { secret } = await call('connect', { userId: 'u4', provider: 'git_host_a', repository: 'acme/mine' });
    const strict = await world.ingest({ unsigned: false });
    const forged = { ...push('acme/other'), extra: { full_name: 'acme/mine' } };
    expect((await signed(forged, secret, strict)).status).toBe(401);
    expect((await signed(push('acme/mine'), 'a guess', strict)).status).toBe(401);
    expect((await signed(push('ACME/Mine'), secret, strict)).status).toBe(200);
  });

  it('is no secret told by the answer to a wrong signature: it is unsigned, or refused, as one of any repository', async () => {
    await call('connect', { userId: 'u9', provider: 'git_host_a', repository: 'acme/known' });
    const strict = await world.ingest({ unsigned: false });
    for (const name of ['acme/known', 'acme/unknown'])
      expect([name, (await signed(push(name), 'a guess', strict)).status]).toEqual([name, 401]);
    const open = await world.ingest();
    for (const name of ['acme/known', 'acme/unknown']) {
      const { status, body } = await signed(push(name), 'a guess', open);
      expect([name, status, body['status']]).toEqual([name, 200, 'Success']);
      // Nobody's but the server's own.
      expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({ tenant: 'service' });
      expect(world.jobs.at(-1)?.origin).toMatchObject({ trusted: false });
    }
  });

  it("counts beside the server's own secret, whatever repositories are accepted else", async () => {
    const { secret } = await call('connect', { userId: 'u5', provider: 'git_host_a', repository: 'acme/both' });
    const strict = await world.ingest({ secrets: { git_host_a: 'server' }, repositories: ['none/*'] });
    expect((await signed(push('acme/both'), secret, strict)).body).toMatchObject({ status: 'Success' });
    expect((await signed(push('acme/both'), 'server', strict)).body).toMatchObject({ status: 'Failed', run_id: null });
    expect((await signed(push('acme/both'), 'neither', strict)).status).toBe(401);
  });

  it('disconnected, its secret is worth nothing at any ingest; nobody else can disconnect it', async () => {
    const other = await world.ingest({ beside: true });
    const { id, secret } = await call('connect', { userId: 'u6', provider: 'git_host_a', repository: 'acme/gone' });
    for (const one of [ingest, other]) expect((await signed(push('acme/gone'), secret, one)).status).toBe(200);
    await expect(call('disconnect', { userId: 'u7', id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await call('disconnect', { userId: 'u6', id });
    await world.bus.flush();
    for (const one of [ingest, other]) {
      const { body } = await signed(push('acme/gone'), secret, one);
      expect(await world.reads.view(body.run_id ?? '', ['user/u6'])).toBeNull();
    }
    expect((await call('connections', { userId: 'u6' })).repositories).toEqual([]);
  });

  it('is found by the id that it was shown with before ids were UUIDs, too', async () => {
    const { id } = await call('connect', { userId: 'u16', provider: 'git_host_a', repository: 'acme/kept' });
    await call('disconnect', { userId: 'u16', id: connectionIdOf('u16', 'git_host_a', 'acme/kept') });
    expect((await call('connections', { userId: 'u16' })).repositories).toEqual([]);
    await expect(call('disconnect', { userId: 'u16', id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is connected once by a user, and by a name', async () => {
    const request = { userId: 'u8', provider: 'git_host_a', repository: 'acme/twice' };
    await call('connect', request);
    await expect(call('connect', { ...request, repository: 'Acme/Twice' })).rejects.toMatchObject({ code: 'CONFLICT' });
    for (const bad of [
      { provider: 'svn' },
      { repository: '' },
      { repository: 'acme' },
      { repository: '../..' },
      { repository: 'acme/..' },
      { repository: 'acme/./demo' },
      { repository: 'a b/c' },
      { repository: '/x' },
    ]) {
      await expect(call('connect', { ...request, ...bad })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    }
  });

  it('is one of so many of its users, and of its user’s, where all are connected at the same moment', async () => {
    const connections = world.store.collection(connectionsSpec);
    const connected = async (requests: readonly { readonly userId: string; readonly repository: string }[]) =>
      await Promise.allSettled(requests.map((of) => call('connect', { ...of, provider: 'git_host_a' })));
    const made = (results: readonly PromiseSettledResult<unknown>[]): number =>
      results.filter(({ status }) => status === 'fulfilled').length;
    const ofRepository = await connected(
      Array.from({ length: 70 }, (_, index) => ({ userId: `many${index}`, repository: 'acme/popular' })),
    );
    expect(made(ofRepository)).toBeLessThanOrEqual(50);
    for (let index = 0; index < 990; index += 1)
      await connections.insert({
        ...{ id: `filled${index}`, userId: 'collector', provider: 'git_host_a', createdAt: index, secret: '' },
        ...{ repository: `acme/f${index}`, repositoryKey: `acme/f${index}` },
      });
    const ofUser = await connected(
      Array.from({ length: 40 }, (_, index) => ({ userId: 'collector', repository: `acme/new${index}` })),
    );
    expect(made(ofUser)).toBeLessThanOrEqual(10);
    expect(ofUser.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'CONFLICT' } });
    expect((await call('connections', { userId: 'collector' })).repositories).toHaveLength(990 + made(ofUser));
  });

  it('CONNECTION-1: fifty accounts that prove nothing keep its place from nobody for longer than an hour', async () => {
    let now = Date.now();
    const settings = { mode: 'production', allowedHosts: ['github.com'] } as const;
    await world.ingest({ ...settings, now: () => (now += 1) });
    const rows = world.store.collection(connectionsSpec);
    const squat = (userId: string): Promise<unknown> =>
      call('connect', { userId, provider: 'git_host_a', repository: 'acme/wanted' });
    const squatters = Array.from({ length: 50 }, (_, index) => `squatter${index}`);
    for (const userId of squatters) await squat(userId);
    await expect(squat('owner')).rejects.toMatchObject({ code: 'CONFLICT' });

    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    const [proved, unproved] = await Promise.all(
      ['squatter0', 'squatter1'].map((userId) => connections.named(userId, 'git_host_a', 'acme/wanted')),
    );
    if (proved == null || unproved == null) throw new Error('they are not connected');
    await connections.prove(proved, 'github.com', Date.now());
    await world.ingest({ ...settings, now: () => unproved.createdAt + 60 * 60_000 });
    // Who has a place already takes nobody else's.
    await expect(squat('squatter7')).rejects.toMatchObject({ code: 'CONFLICT' });
    await squat('owner');
    const left = (
      await rows.list({ where: { provider: 'git_host_a', repositoryKey: 'acme/wanted' }, limit: 100, parts: [] })
    ).map(({ userId }) => userId);
    expect(left.toSorted()).toEqual([...squatters.filter((userId) => userId !== 'squatter1'), 'owner'].toSorted());
  });

  it('CONNECTION-1: in development mode, where all are proved at once, none gives way', async () => {
    const connect = (userId: string): Promise<unknown> =>
      call('connect', { userId, provider: 'git_host_a', repository: 'acme/full' });
    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    for (let index = 0; index < 50; index += 1)
      await connections.connect(`one${index}`, 'git_host_a', 'acme/full', { now: index, haveToBeProved: false });
    await expect(connect('another')).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('its proof stays where it is found by two requests at once: at no moment is a push of it ignored again', async () => {
    const proofs = world.store.collection(proofsSpec);
    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    const connect = (now: number) =>
      connections.connect('u30', 'git_host_a', 'acme/proved', { now, haveToBeProved: true });
    const first = await connect(1);
    await connections.prove(first, 'github.com', 2);
    await connections.prove(first, 'github.com', 3);
    expect(await proofs.get(first.id)).toMatchObject({ createdAt: 1, provedAt: 2 });
    // What one that is gone has left is no proof of the next.
    await world.store.collection(connectionsSpec).delete(first.id);
    await connections.prove(await connect(4), 'github.com', 5);
    expect(await proofs.get(first.id)).toMatchObject({ createdAt: 4, provedAt: 5 });
  });

  it('that was connected anew meanwhile is not ended by who still ends the one before', async () => {
    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    const connect = (now: number) =>
      connections.connect('u31', 'git_host_a', 'acme/anew', { now, haveToBeProved: false });
    const { id } = await connect(1);
    const connectionEnds = async (): Promise<void> => {
      await connections.disconnect('u31', id);
      await connect(2);
    };
    const { disconnect } = ingestCalls({
      ...{ connections, bus: world.bus, policy: { mode: 'development', allowedHosts: [] } },
      intake: { connectionEnds } as unknown as CallsOptions['intake'],
    } as unknown as CallsOptions);
    expect(await disconnect({ userId: 'u31', id })).toEqual({ disconnected: true });
    expect(await connections.find('u31', id)).toMatchObject({ createdAt: 2 });
  });

  it('its secret is in the store encrypted, and unreadable under another JWT_SECRET', async () => {
    const { secret } = await call('connect', { userId: 'u9', provider: 'git_host_a', repository: 'acme/kept' });
    const [row] = await world.store
      .collection(connectionsSpec)
      .list({ where: { userId: 'u9' }, orderBy: { field: 'createdAt', direction: 'desc' }, limit: 1 });
    expect(Buffer.from(row?.secret ?? '').toString('latin1')).not.toContain(secret);
    const other = new ConnectionsRepository(world.store, ingestKeys('another secret that is long enough').connections);
    expect((await other.secretsOf('git_host_a', 'acme/kept')).secrets).toEqual([]);
    const rotated = new ConnectionsRepository(world.store, ingestKeys(`a new secret,${JWT_SECRET}`).connections);
    const { secrets } = await rotated.secretsOf('git_host_a', 'acme/kept');
    expect(secrets.map((found) => found.secret)).toContain(secret);
  });
});

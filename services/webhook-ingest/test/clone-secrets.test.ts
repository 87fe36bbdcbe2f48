/** Which secret a connected repository is read with: who is asked for it, where it is shown, and what becomes of its name. */
import {
  claimsOfSlip,
  subjects,
  type CloneAnswer,
  type CloneRequest,
  type IngestCalls,
  type IngestVerb,
} from '@penstock/bus';
import { GitError } from '@penstock/git';
import { sealTo } from '@penstock/identity';
import { answerCalls, callService } from '@penstock/service';
import { cloneSecretsSpec, connectionIdOf } from '@penstock/store';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConnectionsRepository } from '../src/model/connections-repository.ts';
import { ingestKeys } from '../src/model/delivery.ts';
import type { CommitSource, RefSource } from '../src/model/ports.ts';
import {
  githubPull,
  githubPush,
  githubSignature,
  makeRepository,
  pipelineText,
  type TestRepository,
} from './repository.ts';
import { JWT_SECRET, makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

const OPENS = { user: 'x-access-token', password: 'canary-4711' };
const SERVER = 'the-secret-of-the-server';

let world: World;
let repository: TestRepository;
let commit: string;
let ingest: RunningIngest;
let answers: CloneAnswer[];
let asked: CloneRequest[];
/** What git was to read, and with what. */
let reads: { readonly url: string; readonly credential?: unknown }[];
let refs: Record<string, string>;
let count = 0;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
  answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
  world.bus.respond<CloneRequest, CloneAnswer>(
    subjects.cloneSecret,
    async (request) => {
      asked.push(request);
      const sealed = await sealTo(request.sealTo, { name: 'CLONE', opens: OPENS });
      return answers.shift() ?? { kind: 'sealed', sealed };
    },
    { queue: 'auth' },
  );
});
afterAll(async () => {
  await world.close();
  repository.remove();
});
beforeEach(() => {
  [answers, asked, reads, refs] = [[], [], [], {}];
});
afterEach(() => ingest.close());

const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> =>
  callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);

const mirrors: CommitSource & RefSource = {
  fetch: (request) => {
    reads.push(request);
    return world.mirrors.fetch({ url: repository.url, commit: request.commit });
  },
  findRef: ({ url, ref, credential }) => {
    reads.push({ url, credential });
    if (url.includes('denied')) return Promise.reject(new GitError('denied', 'the server refuses the credentials'));
    return Promise.resolve(refs[ref] ?? null);
  },
};

async function start(mode: 'development' | 'production' = 'development'): Promise<void> {
  ingest = await world.ingest({
    mode,
    mirrors,
    allowedHosts: ['git.example', 'github.com'],
    secrets: { git_host_a: SERVER },
    forks: 'run',
  });
}

function send(payload: unknown, secret: string, event = 'push'): Promise<Answer> {
  const text = JSON.stringify(payload);
  return ingest.send(text, {
    'x-github-event': event,
    'x-github-delivery': `n${(count += 1)}`,
    'x-hub-signature-256': githubSignature(text, secret),
  });
}

const push = (name: string, url = repository.url): unknown => githubPush({ url, commit, repository: name });
const connect = (userId: string, name: string, cloneSecret?: string) =>
  call('connect', { userId, provider: 'git_host_a', repository: name, cloneSecret });
const shown = async (userId: string): Promise<unknown> =>
  (await call('connections', { userId })).repositories.map(({ cloneSecret }) => cloneSecret);

describe('a connected repository with a secret of its own', () => {
  it('is read with it, pushes and pull requests alike; what the server vouches for is not', async () => {
    await start();
    const { secret } = await connect('c1', 'acme/own', 'CLONE');
    expect((await send(push('acme/own'), secret)).body).toMatchObject({ status: 'Success' });
    refs['refs/pull/7/head'] = commit;
    const slip = claimsOfSlip(world.jobs.at(-1)?.cloneSlip ?? '');
    expect(slip).toMatchObject({ tenant: 'user/c1', repository: 'acme/own', cloneUrl: repository.url, names: [] });
    const pull = githubPull({ url: repository.url, commit, repository: 'acme/own', fork: true });
    await send(pull, secret, 'pull_request');
    expect(reads.map(({ credential }) => credential)).toEqual([OPENS, OPENS, OPENS]);
    expect(asked.map(({ sealTo: _, ...about }) => about)).toEqual(
      Array.from({ length: 2 }, () => ({
        ...{ userId: 'c1', provider: 'git_host_a', repository: 'acme/own', cloneUrl: repository.url },
      })),
    );
    expect((await send(push('acme/own'), SERVER)).body).toMatchObject({ status: 'Success' });
    expect(world.jobs.at(-1)?.cloneSlip).toBeUndefined();
    const other = await connect('c2', 'acme/own');
    expect((await send(push('acme/own'), other.secret)).body).toMatchObject({ status: 'Success' });
    expect(reads.slice(3).map(({ credential }) => credential)).toEqual([undefined, undefined]);
    expect(asked).toHaveLength(2);
  });

  it('that is not given fails the run once, with why; one that cannot be looked up is asked again', async () => {
    await start();
    const { secret } = await connect('c3', 'acme/missing', 'CLONE');
    answers.push({ kind: 'refused', why: 'there is no secret CLONE' });
    const { body } = await send(push('acme/missing'), secret);
    expect(body).toMatchObject({ status: 'Failed', error: { code: 'checkout', message: 'there is no secret CLONE' } });
    expect([asked.length, reads.length]).toEqual([1, 0]);
    answers.push({ kind: 'unavailable' });
    expect((await send(push('acme/missing'), secret)).body).toMatchObject({ status: 'Success' });
    expect(asked).toHaveLength(3);
  });

  it('is shown to the first host that may have the repository, while it is looked for, and to the one of its proof then', async () => {
    await start('production');
    const { id, proof } = await connect('c4', 'acme/site', 'CLONE');
    const verify = (): Promise<unknown> => call('verify', { userId: 'c4', id });
    await expect(verify()).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringMatching(/not found in 'acme\/site' \(github.com\).*penstock secret set CLONE/u),
    });
    const place = { url: 'https://github.com/acme/site.git', credential: OPENS };
    expect(reads).toEqual([place]);
    refs[proof.ref] = commit;
    expect(await verify()).toMatchObject({ proved: true, cloneSecret: 'CLONE' });
    expect(reads).toEqual([place, place]);
    const rows = world.store.collection(cloneSecretsSpec);
    const kept = connectionIdOf('c4', 'git_host_a', 'acme/site');
    expect(await rows.get(kept)).toMatchObject({ name: 'CLONE', host: 'github.com' });
    await call('clone-secret', { userId: 'c4', id, name: 'ANOTHER' });
    expect(await rows.get(kept)).toMatchObject({ name: 'ANOTHER', host: 'github.com' });
    refs['refs/heads/main'] = commit;
    const dispatched = { userId: 'c4', provider: 'git_host_a', repository: 'acme/site', ref: 'main' };
    expect(await call('file', dispatched)).toMatchObject({ source: '.pipeline.yaml' });
    expect(reads.at(-1)).toMatchObject(place);
    const denied = await connect('c4', 'acme/denied', 'CLONE');
    answers.push({ kind: 'refused', why: 'there is no secret CLONE' });
    for (const why of [/there is no secret CLONE/u, /penstock secret set CLONE/u])
      await expect(call('verify', { userId: 'c4', id: denied.id })).rejects.toMatchObject({
        code: 'BAD_USER_INPUT',
        message: expect.stringMatching(why),
      });
  });

  it('is its user’s to name, change and take off, by a name alone', async () => {
    await start();
    const { id } = await connect('c5', 'acme/named');
    expect(await shown('c5')).toEqual([null]);
    const set = (name: string | null, userId = 'c5'): Promise<unknown> => call('clone-secret', { userId, id, name });
    expect(await set('FIRST')).toMatchObject({ id, cloneSecret: 'FIRST' });
    await set('SECOND');
    expect(await shown('c5')).toEqual(['SECOND']);
    await expect(set('FIRST', 'c6')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    for (const bad of ['', 'ghp_token', 'user:password'])
      await expect(set(bad)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    await expect(connect('c5', 'acme/bad', 'not a name')).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    await set(null);
    expect(await shown('c5')).toEqual([null]);
  });

  it('is for the host of the proof also where it is named by who does not know of that yet', async () => {
    await start();
    const rows = world.store.collection(cloneSecretsSpec);
    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    await connect('c8', 'acme/raced', 'CLONE');
    const before = await connections.named('c8', 'git_host_a', 'acme/raced');
    if (before === null) throw new Error('there is no connection');
    await connections.prove(before, 'github.com', 1);
    await connections.setCloneSecret(before, 'LATER', 2);
    expect(await rows.get(before.id)).toMatchObject({ name: 'LATER', host: 'github.com' });
  });

  it('goes with its connection, also where that was ended half, and is no later one’s', async () => {
    await start();
    const rows = world.store.collection(cloneSecretsSpec);
    const first = await connect('c7', 'acme/gone', 'CLONE');
    await expect(connect('c7', 'acme/gone', 'OTHER')).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await shown('c7')).toEqual(['CLONE']);
    await call('disconnect', { userId: 'c7', id: first.id });
    expect(await rows.get(connectionIdOf('c7', 'git_host_a', 'acme/gone'))).toBeNull();

    const id = connectionIdOf('c7', 'git_host_a', 'acme/half');
    const left = { id, name: 'CLONE', createdAt: 7, host: '', changedAt: 7, step: 0 };
    const connections = new ConnectionsRepository(world.store, ingestKeys(JWT_SECRET).connections);
    await rows.replaceNewer([left]);
    await connections.end('c7', id, 6);
    expect(await rows.get(id)).toEqual(left);
    await connections.end('c7', id, 7);
    expect(await rows.get(id)).toBeNull();

    // What ends is the schedule of a repository that nobody has connected.
    await connections.end('', '', 7);

    await rows.replaceNewer([left]);
    await connect('c7', 'acme/half');
    expect([await shown('c7'), await rows.get(id)]).toEqual([[null], null]);
  });
});

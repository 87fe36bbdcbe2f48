/** Who is believed: unsigned beside signed deliveries, one provider beside the other, connections before and after their proof. */
import type { IngestCalls, IngestVerb } from '@penstock/bus';
import { GitError } from '@penstock/git';
import { ParsePool } from '@penstock/parse-pool';
import { answerCalls, callService } from '@penstock/service';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startFakeHost, type FakeHost } from './fake-host.ts';
import {
  githubPush,
  githubSignature,
  gitlabPush,
  makeRepository,
  pipelineText,
  type TestRepository,
} from './repository.ts';
import { makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

const MIB = 1024 * 1024;
let world: World;
let repository: TestRepository;
let commit: string;

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

const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> =>
  callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);

let count = 0;
const github = (ingest: RunningIngest, payload: object, secret?: string, id = `t${(count += 1)}`): Promise<Answer> => {
  const text = JSON.stringify(payload);
  return ingest.send(text, {
    'x-github-event': 'push',
    'x-github-delivery': id,
    ...(secret === undefined ? {} : { 'x-hub-signature-256': githubSignature(text, secret) }),
  });
};
const gitlab = (ingest: RunningIngest, payload: object, token?: string): Promise<Answer> =>
  ingest.send(payload, {
    'x-gitlab-event': 'Push Hook',
    'x-gitlab-event-uuid': `t${(count += 1)}`,
    ...(token === undefined ? {} : { 'x-gitlab-token': token }),
  });
const push = (name: string, url = repository.url): Record<string, unknown> =>
  githubPush({ url, commit, repository: name });
const labPush = (name: string): object => gitlabPush({ url: repository.url, commit, repository: name });

describe('an unsigned delivery', () => {
  it('of one provider is refused as soon as the other has a secret', async () => {
    const ingest = await world.ingest({ secrets: { git_host_a: 'server' } });
    expect(await gitlab(ingest, labPush('acme/demo'))).toMatchObject({
      status: 401,
      body: { error: 'invalid_signature' },
    });
    expect((await github(ingest, push('acme/demo'))).status).toBe(401);
    expect((await github(ingest, push('acme/demo'), 'server')).body).toMatchObject({ status: 'Success' });
  });

  it('is taken where the operator says so, but never for a provider that has a secret', async () => {
    const ingest = await world.ingest({ secrets: { git_host_a: 'server' }, unsigned: true });
    expect((await gitlab(ingest, labPush('acme/demo'))).body).toMatchObject({ status: 'Success' });
    expect((await github(ingest, push('acme/demo'))).status).toBe(401);
  });

  it('shares no key with a signed one of the same name, so neither group nor quota nor order', async () => {
    const ingest = await world.ingest({ secrets: { git_host_a: 'server' }, unsigned: true });
    const keyOf = async ({ body }: Answer): Promise<string | undefined> =>
      (await world.reads.view(body.run_id ?? '', ['service']))?.key;
    const keys = [
      await keyOf(await github(ingest, push('acme/same'), 'server')),
      await keyOf(await gitlab(ingest, labPush('acme/same'))),
    ];
    expect(keys).toEqual(['service/git_host_a/signed/acme/same', 'service/git_host_b/unsigned/acme/same']);
  });

  it('has its file read in a turn of its own, not in that of a signed one of the same name', async () => {
    const ingest = await world.ingest({ secrets: { git_host_a: 'server' }, unsigned: true });
    const uses = vi.spyOn(ParsePool.prototype, 'uses');
    await github(ingest, push('acme/turns'), 'server');
    await gitlab(ingest, labPush('acme/turns'));
    const turns = uses.mock.calls.map(([, key]) => key);
    uses.mockRestore();
    expect(turns).toEqual(['service/git_host_a/signed/acme/turns', 'service/git_host_b/unsigned/acme/turns']);
  });

  it('with the id of a signed one is another delivery, whichever comes first', async () => {
    const open = await world.ingest({ unsigned: true });
    const first = await github(open, push('acme/ids'), undefined, 'same-id');
    const strict = await world.ingest({ secrets: { git_host_a: 'server' } });
    const second = await github(strict, push('acme/ids'), 'server', 'same-id');
    expect(second.body).toMatchObject({
      status: 'Success',
      run_id: expect.not.stringMatching(String(first.body.run_id)),
    });
  });

  it('has at most 1 MiB and is not nested deeply; a signed one may have more', async () => {
    const ingest = await world.ingest({ unsigned: true });
    const large = { ...push('acme/demo'), filler: 'x'.repeat(MIB) };
    expect(await github(ingest, large)).toMatchObject({ status: 413, body: { error: 'payload_too_large' } });
    // A signature that nobody here can check is none.
    expect((await github(ingest, large, 'a guess')).status).toBe(413);
    const deep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
    expect(await ingest.send(deep, { 'x-github-event': 'push' })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('nested') },
    });
    const text = { ...push('acme/demo'), filler: '[{"\\"'.repeat(100) };
    expect((await github(ingest, text)).body).toMatchObject({ status: 'Success' });
    const strict = await world.ingest({ secrets: { git_host_a: 'server' } });
    expect((await github(strict, large, 'server')).body).toMatchObject({ status: 'Success' });
  });
});

describe('the file of a repository', () => {
  const file = (request: Partial<IngestCalls['file']['request']>) =>
    call('file', { provider: 'git_host_a', repository: 'acme/asked', ref: 'main', ...request });

  it('is read at a branch or a tag where its last push was from, and trusted as far as that push was', async () => {
    repository.git('tag', '-f', '-a', 'v1', '-m', 'one', commit);
    await github(await world.ingest({ unsigned: true }), push('acme/asked'));
    const unsigned = await file({});
    expect(unsigned).toMatchObject({ ref: 'refs/heads/main', commit, cloneUrl: repository.url, trusted: false });
    await github(await world.ingest({ secrets: { git_host_a: 'server' } }), push('acme/asked'), 'server');
    expect(await file({ ref: 'v1' })).toEqual({
      ...{ provider: 'git_host_a', repository: 'acme/asked', ref: 'refs/tags/v1', commit, cloneUrl: repository.url },
      ...{ source: '.pipeline.yaml', yaml: pipelineText('demo'), extensions: [], tenant: 'service', trusted: true },
      ...{ key: 'service/git_host_a/signed/acme/asked', defaultBranch: 'trunk' },
    });
    // Which branch is the default one is believed of who signs.
    const naming = (defaultBranch: string): object => {
      const payload = push('acme/asked');
      return { ...payload, repository: { ...(payload['repository'] as object), default_branch: defaultBranch } };
    };
    await github(await world.ingest({ secrets: { git_host_a: 'server' } }), naming('release'), 'server');
    await github(await world.ingest({ unsigned: true }), naming('other'));
    expect(await file({})).toMatchObject({ defaultBranch: 'release' });
    for (const ref of ['gone', 'refs/heads/v1', 'refs/notes/x', '-x', 'a b', 'a..b', '', 'x'.repeat(300)])
      await expect(file({ ref }), ref).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    await expect(file({ provider: 'other' })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('is given to whoever has connected and proved it, from that host alone; with the API key, of an allowed one', async () => {
    const asked: string[] = [];
    await world.ingest({
      mode: 'production',
      allowedHosts: ['github.com', 'git.example'],
      repositories: ['acme/*'],
      mirrors: {
        fetch: () => world.mirrors.fetch({ url: repository.url, commit }),
        findRef: async ({ url, ref }: { url: string; ref: string }) => {
          asked.push(`${url} ${ref}`);
          if (ref.includes('penstock-proof')) return url.includes('git.example') ? commit : null;
          return ref === 'refs/heads/main' ? commit : null;
        },
      },
    });
    await expect(file({ userId: 'f1' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const { id } = await call('connect', { userId: 'f1', provider: 'git_host_a', repository: 'acme/asked' });
    await expect(file({ userId: 'f1' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await call('verify', { userId: 'f1', id });
    asked.length = 0;
    expect(await file({ userId: 'f1' })).toMatchObject({
      ...{ tenant: 'user/f1', key: 'user/f1', trusted: true },
      cloneUrl: 'https://git.example/acme/asked.git',
    });
    expect(asked).toEqual(['https://git.example/acme/asked.git refs/heads/main']);
    await expect(file({ userId: 'f2' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await file({})).toMatchObject({ tenant: 'service', cloneUrl: 'https://github.com/acme/asked.git' });
    await expect(file({ repository: 'other/asked' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  it('that is bad, or missing, is said; a host that is away is asked again', async () => {
    let away = false;
    let bad = repository.commit({ '.pipeline.yaml': 'pipeline: {name: x}\nstages: {a: {rn: b}}\n' });
    await world.ingest({
      mirrors: {
        fetch: () => world.mirrors.fetch({ url: repository.url, commit: bad }),
        findRef: async () => {
          if (away) throw new GitError('unreachable', 'nobody answers');
          return bad;
        },
      },
    });
    await expect(file({ repository: 'acme/bad' })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining("unknown key 'rn'"),
    });
    repository.git('rm', '-q', '.pipeline.yaml');
    repository.git('commit', '-q', '-m', 'none');
    bad = repository.git('rev-parse', 'HEAD').trim();
    await expect(file({ repository: 'acme/bad' })).rejects.toMatchObject({
      message: expect.stringContaining('There is none of'),
    });
    away = true;
    await expect(file({ repository: 'acme/bad' })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

describe('a connection in production mode', () => {
  let host: FakeHost;
  beforeAll(async () => {
    host = await startFakeHost();
  });
  afterAll(() => host.close());

  /** An ingest whose git hosts have these refs; every clone gives the one repository. */
  async function production(refs: Record<string, string>, more: object = {}) {
    const asked: string[] = [];
    const fetched: string[] = [];
    const ingest = await world.ingest({
      mode: 'production',
      allowedHosts: ['github.com', 'gitlab.com', 'git.example'],
      statusHosts: { git_host_a: { apiUrl: host.url, token: 'host-token' } },
      mirrors: {
        fetch: async ({ url }: { url: string }) => {
          fetched.push(url);
          return await world.mirrors.fetch({ url: repository.url, commit });
        },
        findRef: async ({ url, ref }: { url: string; ref: string }) => {
          asked.push(url);
          if (url.includes('private')) throw new GitError('denied', 'the server refuses the credentials');
          return refs[url] === ref ? commit : null;
        },
      },
      ...more,
    });
    return { ingest, asked, fetched, refs };
  }
  const connect = (userId: string, name: string, provider = 'git_host_a') =>
    call('connect', { userId, provider, repository: name });
  const at = (server: string, name: string): string => `https://${server}/${name}.git`;

  it('is not proved by connecting: its deliveries are Ignored, nothing is cloned, and the host is told nothing', async () => {
    const { ingest, fetched } = await production({});
    const connected = await connect('p1', 'victim/site');
    expect(connected).toMatchObject({
      proved: false,
      proof: { ref: expect.stringMatching(/^refs\/heads\/penstock-proof-[0-9a-f]{32}$/u) },
    });
    const { body } = await github(ingest, push('victim/site', at('github.com', 'victim/site')), connected.secret);
    expect(body).toMatchObject({ accepted: false, status: 'Ignored', run_id: null, error: { code: 'unproved' } });
    expect(fetched).toEqual([]);
    expect(host.told).toEqual([]);
  });

  it('is proved by the ref in the repository itself; from then on its deliveries are run and told to the host', async () => {
    const { ingest, asked, refs } = await production({});
    const { id, secret, proof } = await connect('p2', 'acme/own');
    await expect(call('verify', { userId: 'p2', id })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(asked).toEqual([at('github.com', 'acme/own'), at('git.example', 'acme/own')]);
    refs[at('github.com', 'acme/own')] = proof.ref;
    await expect(call('verify', { userId: 'p3', id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await call('verify', { userId: 'p2', id })).toMatchObject({ proved: true });
    expect((await call('connections', { userId: 'p2' })).repositories).toMatchObject([{ id, proved: true }]);
    const { body } = await github(ingest, push('acme/own', at('github.com', 'acme/own')), secret);
    expect(body).toMatchObject({ accepted: true, status: 'Success' });
    await vi.waitFor(() => expect(host.statesOf(commit).at(-1)).toBe('success'), { timeout: 10_000 });
  });

  it('of another user for the same repository has a ref of its own, which this proof says nothing about', async () => {
    const { ingest, refs } = await production({});
    const owner = await connect('p4', 'acme/two');
    const other = await connect('p5', 'acme/two');
    expect(other.proof.ref).not.toBe(owner.proof.ref);
    refs[at('github.com', 'acme/two')] = owner.proof.ref;
    await call('verify', { userId: 'p4', id: owner.id });
    await expect(call('verify', { userId: 'p5', id: other.id })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    const { body } = await github(ingest, push('acme/two', at('github.com', 'acme/two')), other.secret);
    expect(body).toMatchObject({ status: 'Ignored', error: { code: 'unproved' } });
  });

  it('that is proved at one host speaks for no repository of that name at another', async () => {
    const { ingest, refs, fetched } = await production({});
    const { id, secret, proof } = await connect('p6', 'acme/elsewhere');
    refs[at('git.example', 'acme/elsewhere')] = proof.ref;
    await call('verify', { userId: 'p6', id });
    const shown = host.told.length;
    const { body } = await github(ingest, push('acme/elsewhere', at('github.com', 'acme/elsewhere')), secret);
    expect(body).toMatchObject({ status: 'Ignored', error: { code: 'unproved' } });
    expect(fetched).toEqual([]);
    // It runs from where it was proved, and the API of the other host is told nothing of it.
    const own = await github(ingest, push('acme/elsewhere', at('git.example', 'acme/elsewhere')), secret);
    expect(own.body).toMatchObject({ status: 'Success' });
    expect(fetched).toEqual([at('git.example', 'acme/elsewhere')]);
    expect(host.told.length).toBe(shown);
  });

  it('is looked for at its own provider only, and hidden repositories are answered as ones without the ref', async () => {
    const { asked } = await production({});
    const message = async (userId: string, name: string): Promise<string> => {
      const { id, proof } = await connect(userId, name, 'git_host_b');
      const error: unknown = await call('verify', { userId, id }).catch((cause: unknown) => cause);
      return (error as Error).message.replaceAll(name, 'NAME').replaceAll(proof.ref, 'REF');
    };
    const [hidden, open] = [await message('p7', 'acme/private'), await message('p7', 'acme/openly')];
    expect(hidden).toBe(open);
    expect(asked.filter((url) => url.includes('github.com'))).toEqual([]);
    expect(asked[0]).toBe(at('gitlab.com', 'acme/private'));
  });

  it('has to be proved anew when it was disconnected', async () => {
    const { refs } = await production({});
    const first = await connect('p8', 'acme/again');
    refs[at('github.com', 'acme/again')] = first.proof.ref;
    await call('verify', { userId: 'p8', id: first.id });
    await call('disconnect', { userId: 'p8', id: first.id });
    const second = await connect('p8', 'acme/again');
    expect(second).toMatchObject({ repository: first.repository, proved: false });
    expect(second.proof.ref).not.toBe(first.proof.ref);
  });
});

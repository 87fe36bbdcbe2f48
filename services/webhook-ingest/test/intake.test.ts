import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DocumentStore } from '@penstock/store';
import { deliveriesSpec } from '../src/model/collections.ts';
import {
  githubPush,
  githubSignature,
  gitlabPush,
  makeRepository,
  pipelineText,
  type TestRepository,
} from './repository.ts';
import { makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

let world: World;
let repository: TestRepository;
let commit: string;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});

let count = 0;
const newId = (): string => `delivery-${(count += 1)}`;
const github = (id = newId()): Record<string, string> => ({ 'x-github-event': 'push', 'x-github-delivery': id });

it.each([
  ['before the push is kept', 1],
  ['after that too', 3],
])(
  'a store that does not answer makes no push wait longer than its sender does, %s, and loses none',
  async (_when, waitSecs) => {
    const answers = Promise.withResolvers<void>();
    const store: DocumentStore = {
      ...world.store,
      collection: (spec) =>
        new Proxy(world.store.collection(spec), {
          get: (real, name) => {
            const method = (Reflect.get(real, name) as (...given: unknown[]) => Promise<unknown>).bind(real);
            if (spec.name !== deliveriesSpec.name || name !== 'getMany') return method;
            return async (...given: unknown[]) => {
              await answers.promise;
              return await method(...given);
            };
          },
        }),
    };
    const ingest = await world.ingest({ store, waitSecs });
    const { status, body } = await ingest.send(githubPush({ url: repository.url, commit }), github());
    expect([status, body]).toMatchObject([200, { status: 'Pending', run_id: expect.any(String) as unknown }]);
    answers.resolve();
    await expect
      .poll(async () => (await world.reads.view(body.run_id ?? '', ['service']))?.status, { timeout: 20_000 })
      .toBe('SUCCESS');
  },
);

it('INTAKE-5: whose sender waits less is answered in its time, and promised no run of a delivery that came before, of which nothing may come yet', async () => {
  const [isLooked, looks] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const mirrors: typeof world.mirrors = {
    ...world.mirrors,
    fetch: async (request) => {
      isLooked.resolve();
      await looks.promise;
      return await world.mirrors.fetch(request);
    },
  };
  const patient = await world.ingest({ mirrors });
  const hasty = await world.ingest({ mirrors, beside: true, waitSecs: 1.5 });
  const nothing = repository.commit({ 'README.md': 'no pipeline' });
  const push = githubPush({ url: repository.url, commit: nothing, repository: 'acme/waits' });
  const headers = github();
  const first = patient.send(push, headers);
  await isLooked.promise;
  const refused = await hasty.send(push, headers);
  expect([refused.status, refused.body['error']]).toEqual([503, 'unavailable']);
  looks.resolve();
  const again = hasty.send(push, headers);
  for (const answer of [await first, await again])
    expect(answer.body).toMatchObject({ status: 'Skipped', run_id: null });
});

describe('a push', () => {
  let ingest: RunningIngest;
  beforeAll(async () => {
    ingest = await world.ingest();
  });

  it.each([
    ['GitHub', { 'x-github-event': 'push', 'x-github-delivery': 'a1' }, githubPush, 'git_host_a'],
    ['provider A by its neutral name', { 'x-githosta-event': 'push' }, githubPush, 'git_host_a'],
    ['GitLab', { 'x-gitlab-event': 'Push Hook', 'idempotency-key': 'b1' }, gitlabPush, 'git_host_b'],
    ['provider B by its neutral name', { 'x-hostb-event': 'Push Hook' }, gitlabPush, 'git_host_b'],
  ])('of %s runs the file of its commit and answers with all fields', async (_name, headers, payload, provider) => {
    const { status, body } = await ingest.send(payload({ url: repository.url, commit }), headers);
    expect(status).toBe(200);
    expect(body).toEqual({
      accepted: true,
      provider,
      repository: 'acme/demo',
      ref: 'refs/heads/main',
      commit,
      run_id: expect.any(String),
      status: 'Success',
      source: '.pipeline.yaml',
    });
    const run = await world.reads.view(body.run_id ?? '', ['service']);
    expect(run).toMatchObject({
      pipelineName: 'demo',
      status: 'SUCCESS',
      key: `service/${provider}/unsigned/acme/demo`,
    });
    const job = world.jobs.find(({ runId }) => runId === body.run_id);
    expect(job?.origin).toMatchObject({
      kind: 'webhook',
      provider,
      repository: 'acme/demo',
      ref: 'refs/heads/main',
      commit,
      cloneUrl: repository.url,
      trusted: false,
      source: '.pipeline.yaml',
      defaultBranch: 'trunk',
    });
  });

  it('is known by the id of its request to whoever executes its run, also of a release that kept none', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const payload = githubPush({ url: repository.url, commit });
    const named = await ingest.send(payload, { ...github(), 'x-request-id': 'host-7', traceparent });
    expect(named.headers['x-request-id']).toBe('host-7');
    const originOf = (answer: Answer): unknown => world.jobs.find(({ runId }) => runId === answer.body.run_id)?.origin;
    expect(originOf(named)).toMatchObject({ requestId: 'host-7', traceparent });
    const other = await ingest.send(payload, github());
    expect(originOf(other)).toMatchObject({ requestId: other.headers['x-request-id'] });
  });

  it.each([
    [
      'GitHub',
      'sender',
      { 'x-github-event': 'push' },
      githubPush,
      { sender: { login: '$(id)' }, pusher: { name: 'x' } },
      '$(id)',
    ],
    [
      'GitHub',
      'pusher',
      { 'x-github-event': 'push' },
      githubPush,
      { sender: 7, pusher: { name: 'x'.repeat(999) } },
      'x'.repeat(255),
    ],
    ['GitLab', 'user_username', { 'x-gitlab-event': 'Push Hook' }, gitlabPush, { user_username: 'alice' }, 'alice'],
  ])(
    'of %s says by its %s who pushed, as data of a bounded length',
    async (_host, _field, headers, payload, more, actor) => {
      const { body } = await ingest.send({ ...payload({ url: repository.url, commit }), ...more }, headers);
      const run = await world.reads.view(body.run_id ?? '', ['service']);
      expect(run).toMatchObject({ trigger: 'push', trusted: false, actor });
    },
  );

  it('of a tag is a push with GitLab too, and runs the commit that the tag names', async () => {
    const { body } = await ingest.send(
      { ...gitlabPush({ url: repository.url, commit, ref: 'refs/tags/v1' }), after: 'f'.repeat(40) },
      { 'x-gitlab-event': 'Tag Push Hook' },
    );
    expect(body).toMatchObject({ accepted: true, status: 'Success', commit, ref: 'refs/tags/v1' });
  });

  it.each([
    [
      'GitHub',
      { 'x-github-event': 'push' },
      (url: string) => ({
        repository: { full_name: 'acme/demo', html_url: url, git_url: 'git://git.example/acme/demo.git' },
      }),
    ],
    [
      'GitLab',
      { 'x-gitlab-event': 'Push Hook' },
      (url: string) => ({ project: { path_with_namespace: 'acme/demo', url } }),
    ],
  ])('of %s is cloned from what other address the payload has', async (_name, headers, addresses) => {
    const { body } = await ingest.send(
      { ref: 'refs/heads/main', after: commit, ...addresses(repository.url) },
      headers,
    );
    expect(body).toMatchObject({ status: 'Success', commit });
  });

  it('of a commit that is not the head of any branch runs that commit', async () => {
    const old = repository.commit({ '.pipeline.yml': pipelineText('old') });
    repository.commit({ '.pipeline.yml': pipelineText('newer') });
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: old }), github());
    expect(body).toMatchObject({ status: 'Success', source: '.pipeline.yml' });
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({ pipelineName: 'old' });
  });

  it.each([
    ['a ping', { 'x-github-event': 'ping' }, { zen: 'x', repository: { full_name: 'acme/demo' } }],
    ['another event', { 'x-github-event': 'issues' }, { action: 'opened' }],
    [
      'a deleted branch',
      { 'x-github-event': 'push' },
      { ref: 'refs/heads/x', after: '0'.repeat(40), deleted: true, repository: { full_name: 'acme/demo' } },
    ],
    [
      "GitLab's deleted branch",
      { 'x-gitlab-event': 'Push Hook' },
      { ref: 'refs/heads/x', after: '0'.repeat(40), checkout_sha: null, project: { path_with_namespace: 'acme/demo' } },
    ],
    ["GitLab's merge request", { 'x-gitlab-event': 'Merge Request Hook' }, { object_kind: 'merge_request' }],
  ])('%s is ignored', async (_name, headers, payload) => {
    const { status, body } = await ingest.send(payload, headers);
    expect(status).toBe(200);
    expect(body).toMatchObject({ accepted: false, status: 'Ignored', run_id: null, source: 'none' });
    expect(Object.keys(body).toSorted()).toEqual([
      'accepted',
      'commit',
      'provider',
      'ref',
      'repository',
      'run_id',
      'source',
      'status',
    ]);
  });

  it.each([
    ['no known header', {}, undefined],
    ['the headers of both hosts', { 'x-github-event': 'push', 'x-gitlab-event': 'Push Hook' }, undefined],
    ['a body that is not JSON', { 'x-github-event': 'push' }, '{"ref":'],
    ['a form', { 'x-github-event': 'push', 'content-type': 'application/x-www-form-urlencoded' }, 'payload=%7B%7D'],
    ['an empty body', { 'x-github-event': 'push' }, ''],
    ['a list', { 'x-github-event': 'push' }, '[]'],
    ['a byte order mark', { 'x-github-event': 'push' }, '\uFEFF{}'],
    ['no repository', { 'x-github-event': 'push' }, JSON.stringify({ ref: 'refs/heads/main', after: 'a'.repeat(40) })],
    [
      'a commit that is an option',
      { 'x-github-event': 'push' },
      JSON.stringify({
        ref: 'refs/heads/main',
        after: '--output=/x',
        repository: { full_name: 'a/b', clone_url: 'file:///x' },
      }),
    ],
    [
      'no address to clone from',
      { 'x-github-event': 'push' },
      JSON.stringify({ ref: 'refs/heads/main', after: 'a'.repeat(40), repository: { full_name: 'a/b', clone_url: 5 } }),
    ],
    [
      "no address of GitLab's to clone from",
      { 'x-gitlab-event': 'Push Hook' },
      JSON.stringify({ ref: 'refs/heads/main', after: 'a'.repeat(40), project: { path_with_namespace: 'a/b' } }),
    ],
    [
      'a ref that is none',
      { 'x-github-event': 'push' },
      JSON.stringify({ ref: '-x', after: 'a'.repeat(40), repository: { full_name: 'a/b', clone_url: 'file:///x' } }),
    ],
  ])('%s is answered 400', async (_name, headers, payload) => {
    const { status, body } = await ingest.send(payload ?? githubPush({ url: repository.url, commit }), headers);
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: 'bad_request', message: expect.any(String) });
  });

  it('a signed body over 25 MiB is answered 413, one just below is read', async () => {
    const secrets = { git_host_a: 'server' };
    const strict = await world.ingest({ secrets, beside: true });
    const send = (bytes: number) => {
      const body = Buffer.alloc(bytes, 'x');
      const signature = githubSignature(body, secrets.git_host_a);
      return strict.send(body, { 'x-github-event': 'push', 'x-hub-signature-256': signature });
    };
    expect((await send(25 * 1024 * 1024 + 1)).status).toBe(413);
    expect((await send(25 * 1024 * 1024)).status).toBe(400);
    await strict.close();
  });

  it.each(['http://169.254.169.254/x', 'ext::sh -c id', 'ssh://-oProxyCommand=id/x', 'git@host:-x', '-x', '//evil/x'])(
    '%s starts nothing',
    async (url) => {
      const before = [(await world.runsOf()).length, world.fetches.length];
      const { status, body } = await ingest.send(githubPush({ url, commit }), github());
      expect(status).toBe(200);
      expect(body).toMatchObject({
        accepted: true,
        status: 'Failed',
        run_id: null,
        source: 'none',
        error: { code: 'address_not_allowed' },
      });
      expect([(await world.runsOf()).length, world.fetches.length]).toEqual(before);
    },
  );

  it('is posted; other methods are answered 405', async () => {
    const response = await ingest.app.inject({ method: 'GET', url: '/webhook' });
    expect([response.statusCode, response.headers['allow'], response.headers['x-content-type-options']]).toEqual([
      405,
      expect.stringContaining('POST'),
      'nosniff',
    ]);
  });

  it('a commit or a repository that is not there is a run that failed with the reason checkout', async () => {
    for (const push of [
      githubPush({ url: repository.url, commit: 'a'.repeat(40) }),
      githubPush({ url: 'file:///nonexistent/repository', commit }),
    ]) {
      const { body } = await ingest.send(push, github());
      expect(body).toMatchObject({
        status: 'Failed',
        run_id: expect.any(String),
        source: 'none',
        error: { code: 'checkout' },
      });
      expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({
        status: 'FAILED',
        reason: 'checkout',
        stages: [],
        pipelineName: 'acme/demo',
      });
    }
  });

  it.each([
    ['a file with mistakes', { '.pipeline.yaml': 'pipeline:\n  name: x\nstages:\n  a:\n    rum: x\n' }],
    ['a file that is a link', { '.pipeline.yaml': null }],
    [
      'a file with an input that nobody gives',
      { '.pipeline.yaml': 'pipeline:\n  name: x\ninputs:\n  version: {required: true}\nstages:\n  a:\n    run: x\n' },
    ],
  ])('%s is a run that failed with the reason pipeline_file', async (_name, files) => {
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: repository.commit(files) }), github());
    expect(body).toMatchObject({
      status: 'Failed',
      run_id: expect.any(String),
      source: '.pipeline.yaml',
      error: { code: 'pipeline_file' },
    });
    expect(JSON.stringify(body)).not.toContain('root:');
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({
      status: 'FAILED',
      reason: 'pipeline_file',
      stages: [],
    });
  });

  it('no pipeline: Skipped, and no run', async () => {
    const { body } = await ingest.send(
      githubPush({ url: repository.url, commit: repository.commit({ 'README.md': 'x' }) }),
      github(),
    );
    expect(body).toMatchObject({ accepted: true, status: 'Skipped', run_id: null, source: 'none' });
  });

  it('the first of the three files is taken', async () => {
    const [yaml, yml, legacy] = ['.pipeline.yaml', '.pipeline.yml', '.pipeline/pipeline.yaml'] as const;
    const sources = [];
    for (const files of [
      { [yaml]: pipelineText('p'), [yml]: pipelineText('p') },
      { [yml]: pipelineText('p'), [legacy]: pipelineText('p') },
      { [legacy]: pipelineText('p') },
    ].map((each) => each as Record<string, string>)) {
      sources.push(
        (await ingest.send(githubPush({ url: repository.url, commit: repository.commit(files) }), github())).body[
          'source'
        ],
      );
    }
    expect(sources).toEqual([yaml, yml, '.pipeline/pipeline.yaml']);
  });

  it('a push that the triggers do not match is a run without stages, SKIPPED', async () => {
    const filtered = repository.commit({
      '.pipeline.yaml': pipelineText('filtered', 'on:\n  push:\n    branches: [release/**]\n    paths: [src/**]\n'),
    });
    const send = async (ref: string, changed: string[]): Promise<string> =>
      String(
        (await ingest.send(githubPush({ url: repository.url, commit: filtered, ref, changed, message: 'x' }), github()))
          .body['status'],
      );
    expect(await send('refs/heads/main', ['src/a'])).toBe('Skipped');
    expect(await send('refs/tags/v1', ['src/a'])).toBe('Skipped');
    expect(await send('refs/heads/release/1', ['docs/a'])).toBe('Skipped');
    expect(await send('refs/heads/release/1', ['src/a'])).toBe('Success');
    const { body } = await ingest.send(githubPush({ url: repository.url, commit: filtered }), github());
    expect(await world.reads.view(body.run_id ?? '', ['service'])).toMatchObject({
      status: 'SKIPPED',
      stages: [],
      pipelineName: 'filtered',
    });
  });

  it.each(['fix [skip ci]', 'fix\n\n[CI skip]'])(
    '[skip ci] in the message of the payload or of the commit: Skipped (%j)',
    async (message) => {
      const told = await ingest.send(githubPush({ url: repository.url, commit, message }), github());
      const untold = await ingest.send(
        githubPush({
          url: repository.url,
          commit: repository.commit({ '.pipeline.yaml': pipelineText('x') }, message),
        }),
        github(),
      );
      expect([told.body['status'], untold.body['status']]).toEqual(['Skipped', 'Skipped']);
    },
  );
});

describe('signatures', () => {
  it("GitHub's are over the raw bytes, with hexadecimal digits of either case", async () => {
    const ingest = await world.ingest({ secrets: { git_host_a: 'secret' } });
    const text = JSON.stringify(githubPush({ url: repository.url, commit }));
    const send = (payload: string | Buffer, signature?: string) =>
      ingest.send(payload, { ...github(), ...(signature === undefined ? {} : { 'x-hub-signature-256': signature }) });
    const good = githubSignature(text, 'secret');
    expect((await send(text, good)).body).toMatchObject({ status: 'Success' });
    expect(world.jobs.at(-1)?.origin).toMatchObject({ trusted: true });
    const bad = [
      undefined,
      '',
      githubSignature(text, 'other'),
      good.replace('sha256=', 'sha1='),
      good.replace('sha256=', ''),
      good.toUpperCase(),
      good.slice(0, -1),
      `${good}0`,
      `${good} `,
      good.slice(7),
    ];
    for (const signature of bad) {
      const answer = await send(text, signature);
      expect(answer.status, String(signature)).toBe(401);
      expect(answer.body).toMatchObject({ error: 'invalid_signature' });
    }
    const upper = JSON.stringify(githubPush({ url: repository.url, commit }), null, 1);
    expect((await send(upper, `sha256=${githubSignature(upper, 'secret').slice(7).toUpperCase()}`)).status).toBe(200);
    expect(world.jobs.at(-1)?.origin).toMatchObject({ trusted: true });
    expect((await send(JSON.stringify(JSON.parse(text), null, 2), good)).status).toBe(401);
    expect((await send(`\uFEFF${text}`, good)).status).toBe(401);
    expect((await send('not json', 'sha256=00')).status).toBe(401);
    expect((await send('not json', githubSignature('not json', 'secret'))).status).toBe(400);
  });

  it("GitLab's token is compared whole", async () => {
    const ingest = await world.ingest({ secrets: { git_host_b: 'token' } });
    const send = (headers: Record<string, string>) =>
      ingest.send(gitlabPush({ url: repository.url, commit }), { 'x-gitlab-event': 'Push Hook', ...headers });
    expect((await send({ 'x-gitlab-token': 'token' })).status).toBe(200);
    expect((await send({ 'x-hostb-token': 'token' })).status).toBe(200);
    for (const token of ['toke', 'token2', 'TOKEN', ''])
      expect((await send({ 'x-gitlab-token': token })).status).toBe(401);
    expect((await send({})).status).toBe(401);
  });

  it('unsigned deliveries are refused where a secret is required', async () => {
    const ingest = await world.ingest({ unsigned: false });
    expect((await ingest.send(githubPush({ url: repository.url, commit }), github())).status).toBe(401);
  });

  it('an unsigned delivery of a page in a browser starts nothing, whatever name the page gave this machine', async () => {
    const ingest = await world.ingest();
    const runs = (await world.runsOf()).length;
    const page = { origin: 'http://rebound.example:8080', host: 'rebound.example:8080' };
    expect(await ingest.send(githubPush({ url: repository.url, commit }), { ...github(), ...page })).toMatchObject({
      status: 403,
      body: { error: 'forbidden' },
    });
    expect(await world.runsOf()).toHaveLength(runs);
    const signing = await world.ingest({ secrets: { git_host_a: 'a secret' } });
    const body = JSON.stringify(githubPush({ url: repository.url, commit }));
    expect(
      (await signing.send(body, { ...github(), ...page, 'x-hub-signature-256': githubSignature(body, 'a secret') }))
        .status,
    ).toBe(200);
  });
});

describe('what the server decides', () => {
  it("the template takes precedence, and its values are the push's, as data", async () => {
    const template = pipelineText('from-server').replace(
      'echo built',
      'echo "${{ webhook.repository }} ${{ webhook.ref }} ${{ webhook.commit }} ${{ webhook.provider }}"',
    );
    const ingest = await world.ingest({ template });
    const ref = 'refs/heads/$(touch x)`id`"\'\n';
    const { body } = await ingest.send(githubPush({ url: repository.url, commit, ref }), github());
    expect(body).toMatchObject({ status: 'Success', source: 'server_template', ref });
    const job = world.jobs.at(-1);
    expect(Object.values(job?.commands[0]?.bindings ?? {})).toEqual(['acme/demo', ref, commit, 'git_host_a']);
    expect(job?.commands[0]?.script).not.toContain('touch');
  });

  it("the template's name has the push's values, as text that is harmless", async () => {
    const template = pipelineText('tpl ${{ webhook.repository }} ${{ webhook.ref }}');
    const ingest = await world.ingest({ template });
    const ref = 'refs/heads/$(touch x)';
    const { body } = await ingest.send(githubPush({ url: repository.url, commit, ref }), github());
    expect(body).toMatchObject({ status: 'Success', source: 'server_template', ref });
    expect((await world.runsOf())[0]?.pipelineName).toBe('tpl acme/demo refs/heads/__touch_x_');
  });

  it('SERVICE_WEBHOOK_REPOSITORIES bounds which repositories are accepted', async () => {
    const ingest = await world.ingest({ repositories: ['acme/*', '!acme/secret'] });
    const send = async (name: string) =>
      (await ingest.send(githubPush({ url: repository.url, commit, repository: name }), github())).body;
    expect(await send('acme/demo')).toMatchObject({ status: 'Success' });
    expect(await send('acme/secret')).toMatchObject({
      status: 'Failed',
      run_id: null,
      error: { code: 'repository_not_allowed' },
    });
    expect(await send('evil/demo')).toMatchObject({ status: 'Failed', run_id: null });
  });

  it('in production the address is built from an allowed host, whatever the payload says', async () => {
    const asked: string[] = [];
    const mirrors = {
      ...world.mirrors,
      fetch: async ({ url }: { url: string }) => (
        asked.push(url),
        await world.mirrors.fetch({ url: repository.url, commit })
      ),
    };
    const ingest = await world.ingest({ mode: 'production', allowedHosts: ['git.example'], mirrors });
    const send = async (url: string, name = 'acme/demo') =>
      (await ingest.send(githubPush({ url, commit, repository: name }), github())).body;
    expect(await send('https://git.example/evil/other.git')).toMatchObject({ status: 'Success' });
    expect(await send('git@git.example:evil/other.git')).toMatchObject({ status: 'Success' });
    expect(asked).toEqual(['https://git.example/acme/demo.git', 'ssh://git@git.example/acme/demo.git']);
    for (const url of [
      repository.url,
      'http://git.example/a/b',
      'https://other.example/a/b',
      'https://git.example@evil/a/b',
      'https://127.0.0.1/a/b',
      'https://[::ffff:127.0.0.1]/a/b',
    ]) {
      expect(await send(url), url).toMatchObject({
        status: 'Failed',
        run_id: null,
        error: { code: 'address_not_allowed' },
      });
    }
    for (const name of ['../x', 'acme/../x', 'acme', '-a/b', 'a/b c', 'a/b?x'])
      expect(await send('https://git.example/a/b', name), name).toMatchObject({ status: 'Failed', run_id: null });
    expect(asked).toHaveLength(2);
  });
});

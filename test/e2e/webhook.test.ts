import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import examples from '@octokit/webhooks-examples/api.github.com/index.json' with { type: 'json' };
import { signAccessToken } from '@penstock/identity';
import {
  githubPush,
  githubSignature,
  gitlabPush,
  makeRepository,
  startFakeHost,
  type FakeHost,
  type TestRepository,
} from '@penstock/webhook-ingest/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDumbServer, startSmartServer, type GitServer } from '../support/git-servers.ts';
import { startServer, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const CLI = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const SECRET = 'the secret of provider A';
const TOKEN = 'the token of provider B';
const JWT_SECRET = 'a secret of more than thirty-two bytes';

const PIPELINE = [
  'engine: any',
  'pipeline:',
  '  name: pushed',
  'stages:',
  '  show:',
  '    run: |',
  '      cat version',
  '      git rev-parse HEAD',
].join('\n');

let server: RunningServer;
let repository: TestRepository;
let host: FakeHost;
let smart: GitServer;
let dumb: GitServer;

beforeAll(async () => {
  repository = makeRepository();
  host = await startFakeHost();
  smart = await startSmartServer(dirname(repository.folder));
  dumb = await startDumbServer(dirname(repository.folder));
  server = await startServer({
    env: {
      JWT_SECRET,
      SERVICE_WEBHOOK_SECRET: SECRET,
      SERVICE_WEBHOOK_TOKEN: TOKEN,
      SERVICE_WEBHOOK_WAIT_SECS: '30',
      SERVICE_SLOTS: '2',
      SERVICE_GIT_HOST_A_TOKEN: 'statuses',
      SERVICE_GIT_HOST_B_TOKEN: 'statuses',
      GIT_HOST_API_URL: host.url,
    },
  });
});
afterAll(async () => {
  await server.stop();
  for (const each of [host, smart, dumb]) await each.close();
  repository.remove();
});

type Payload = Record<string, unknown>;
interface Result {
  readonly run_id: string | null;
  readonly status: string;
  readonly accepted: boolean;
  readonly commit: string;
  readonly source: string;
}

async function post(payload: Payload, headers: Record<string, string>): Promise<Result> {
  const body = JSON.stringify(payload);
  const proof =
    'x-github-event' in headers
      ? { 'x-hub-signature-256': githubSignature(body, SECRET) }
      : { 'x-gitlab-token': TOKEN };
  const response = await fetch(`${server.url}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...proof, ...headers },
    body,
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Result;
}

let versions = 0;
/** A commit that holds the pipeline and a version that only it has. */
function newCommit(): { readonly commit: string; readonly version: string } {
  const version = `version ${(versions += 1)}`;
  return {
    commit: repository.commit({ '.pipeline.yaml': PIPELINE, version: `${version}\n` }, `to ${version}`),
    version,
  };
}

async function linesOf(runId: string | null): Promise<string[]> {
  const { events } = await readStream(`${server.url}/pipeline/${runId ?? ''}/logs`, server.apiKey);
  return events.filter(({ event }) => event === 'stage_log').map(({ data }) => String(data['line']));
}

/** The example's payload, pushing a commit of ours. */
function repointed(example: Payload, commit: string): Payload {
  const named = example['repository'] as Payload;
  const head = example['head_commit'] as Payload | null;
  return {
    ...example,
    after: commit,
    repository: { ...named, clone_url: repository.url },
    head_commit: head === null ? null : { ...head, id: commit },
  };
}

describe("GitHub's own examples of pushes, re-pointed", () => {
  const pushes =
    (examples as { name: string; examples: Payload[] }[]).find(({ name }) => name === 'push')?.examples ?? [];

  it.each(
    pushes.map((example, index) => [index, String(example['ref']), example['deleted'] === true, example] as const),
  )('number %i of %s, deleted: %s', async (_index, ref, deleted, example) => {
    const { commit, version } = newCommit();
    const result = await post(deleted ? example : repointed(example, commit), {
      'x-github-event': 'push',
      'x-github-delivery': `${ref} ${version}`,
    });
    expect(result).toMatchObject(
      deleted
        ? { accepted: false, status: 'Ignored', run_id: null }
        : { accepted: true, status: 'Success', commit, source: '.pipeline.yaml' },
    );
    expect(deleted ? [] : await linesOf(result.run_id)).toEqual(deleted ? [] : [version, commit]);
  });

  it('what is neither a push nor a pull request is ignored', async () => {
    for (const {
      name,
      examples: [example],
    } of (examples as { name: string; examples: Payload[] }[]).filter(
      ({ name }) => name !== 'push' && name !== 'pull_request',
    )) {
      expect(await post(example ?? {}, { 'x-github-event': name })).toMatchObject({
        accepted: false,
        status: 'Ignored',
        run_id: null,
      });
    }
  });
});

describe("GitLab's documented payloads, re-pointed", () => {
  it.each([
    ['gitlab-push.json', 'Push Hook'],
    ['gitlab-tag-push.json', 'Tag Push Hook'],
  ])('%s starts a run', async (file, event) => {
    const { commit, version } = newCommit();
    const documented = JSON.parse(readFileSync(join(import.meta.dirname, 'fixtures', file), 'utf8')) as Payload;
    const project = { ...(documented['project'] as Payload), git_http_url: repository.url };
    const result = await post(
      { ...documented, project, after: commit, checkout_sha: commit },
      { 'x-gitlab-event': event },
    );
    expect(result).toMatchObject({ accepted: true, status: 'Success', commit });
    expect(await linesOf(result.run_id)).toEqual([version, commit]);
  });
});

describe('wherever it is cloned from', () => {
  it.each(['file', 'smart', 'dumb'])('%s: the stages see the commit that was pushed, not the newest', async (kind) => {
    const { commit, version } = newCommit();
    newCommit();
    repository.git('update-server-info');
    const name = basename(repository.folder);
    const url =
      kind === 'file' ? repository.url : kind === 'smart' ? `${smart.url}/${name}/.git` : `${dumb.url}/${name}/.git`;
    const result = await post(gitlabPush({ url, commit }), { 'x-gitlab-event': 'Push Hook' });
    expect(result).toMatchObject({ status: 'Success' });
    expect(await linesOf(result.run_id)).toEqual([version, commit]);
  });
});

describe('hostile names', () => {
  it.each([
    '$(touch pwned)',
    '`touch pwned`',
    '"; touch pwned; "',
    "'; touch pwned; '",
    '--upload-pack=touch pwned',
    'a\ntouch pwned',
  ])('the ref %j is text to the stages', async (name) => {
    const yaml = [
      'engine: any',
      'pipeline:',
      '  name: hostile',
      'stages:',
      '  show:',
      `    run: 'printf "%s\\n" "$PENSTOCK_REF"; ls'`,
    ].join('\n');
    const commit = repository.commit({ '.pipeline.yaml': yaml, only: 'x' });
    const result = await post(githubPush({ url: repository.url, commit, ref: `refs/heads/${name}` }), {
      'x-github-event': 'push',
      'x-github-delivery': name.replaceAll('\n', ' '),
    });
    expect(result).toMatchObject({ status: 'Success', ref: `refs/heads/${name}` });
    expect(await linesOf(result.run_id)).toEqual([...`refs/heads/${name}`.split('\n'), 'only']);
  });
});

describe('what a push leaves behind', () => {
  it('its status at the host, its delivery with the reasons, and its run are all found by one id', async () => {
    const { commit } = newCommit();
    const { run_id: id } = await post(githubPush({ url: repository.url, commit }), {
      'x-github-event': 'push',
      'x-github-delivery': 'traced',
    });
    const { data } = await server.graphql<{
      run: { status: string };
      webhookDelivery: unknown;
      webhookDeliveries: unknown[];
    }>(
      'query ($id: String!) { run(id: $id) { status } webhookDelivery(id: "traced") { runId outcome verified trace { step passed } } webhookDeliveries(limit: 1) { runId } }',
      { id },
    );
    expect(data.run).toEqual({ status: 'SUCCESS' });
    expect(data.webhookDelivery).toMatchObject({
      runId: id,
      outcome: 'Run',
      verified: 'server',
      trace: ['verified', 'fetched', 'file', 'read', 'matched'].map((step) => ({ step, passed: true })),
    });
    expect(data.webhookDeliveries).toEqual([{ runId: id }]);
    await expect.poll(() => host.statesOf(commit).at(-1), { timeout: 20_000 }).toBe('success');
  });

  it('a replay is a run of its own, a dry run is none', async () => {
    const replay =
      'mutation ($dryRun: Boolean) { replayWebhookDelivery(id: "traced", dryRun: $dryRun) { runId outcome replayOf } }';
    expect((await server.graphql(replay, { dryRun: true })).data).toMatchObject({
      replayWebhookDelivery: { runId: null, outcome: 'Run' },
    });
    const { data } = await server.graphql<{ replayWebhookDelivery: { runId: string } }>(replay);
    await expect
      .poll(
        async () =>
          (
            await server.graphql<{ run: { status: string } | null }>(
              'query ($id: String!) { run(id: $id) { status } }',
              { id: data.replayWebhookDelivery.runId },
            )
          ).data.run?.status,
        { timeout: 20_000 },
      )
      .toBe('SUCCESS');
  });

  it('a connected repository: what is signed with its secret is seen by its user, and by nobody else', async () => {
    const token = await signAccessToken(JWT_SECRET, {
      sub: '01932c07-0000-7000-8000-000000000001',
      sid: 's1',
      email: 'u@example.com',
      tier: 'free',
      admin: false,
      at: Date.now(),
    });
    const asUser = async <T>(query: string, variables: Record<string, unknown> = {}): Promise<T> => {
      const response = await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ query, variables }),
      });
      const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
      expect(errors).toBeUndefined();
      return data;
    };
    const { connectRepository: connected } = await asUser<{
      connectRepository: { id: string; secret: string; webhookUrl: string };
    }>('mutation { connectRepository(provider: "git_host_a", repository: "acme/mine") { id secret webhookUrl } }');
    expect(connected.webhookUrl).toBe(`${server.url}/webhook`);
    const { commit } = newCommit();
    const body = JSON.stringify(githubPush({ url: repository.url, commit, repository: 'acme/mine' }));
    const response = await fetch(connected.webhookUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-hub-signature-256': githubSignature(body, connected.secret),
      },
      body,
    });
    const { run_id: id, status } = (await response.json()) as Result;
    expect(status).toBe('Success');
    const query = 'query ($id: String!) { run(id: $id) { status } webhookDelivery(id: $id) { verified } }';
    expect(await asUser(query, { id })).toEqual({
      run: { status: 'SUCCESS' },
      webhookDelivery: { verified: 'connection' },
    });
    expect((await server.graphql(query, { id })).data).toEqual({ run: null, webhookDelivery: null });
    expect(await asUser('{ repositories { id repository } }')).toEqual({
      repositories: [{ id: connected.id, repository: 'acme/mine' }],
    });
    expect(await asUser('mutation ($id: String!) { disconnectRepository(id: $id) }', { id: connected.id })).toEqual({
      disconnectRepository: true,
    });
  });

  it('nobody who is not logged in connects a repository', async () => {
    const { data, errors } = await server.graphql(
      'mutation { connectRepository(provider: "git_host_a", repository: "acme/demo") { secret } }',
    );
    expect([data, errors?.[0]?.extensions?.code]).toEqual([null, 'UNAUTHENTICATED']);
  });
});

describe('a dispatched run', { timeout: 120_000 }, () => {
  const DISPATCH = `mutation ($repository: String, $ref: String, $inputs: [KeyValueInput!], $runId: String) {
    dispatchPipeline(provider: "git_host_a", repository: $repository, ref: $ref, inputs: $inputs, waitSeconds: 60, runId: $runId) {
      run { id status trigger trusted repository ref commit source inputs { key value } }
    }
  }`;
  interface Dispatched {
    readonly dispatchPipeline: { readonly run: Readonly<Record<string, unknown>> & { readonly id: string } };
  }

  it('has the file, the files and the commit of a branch, the inputs that are given, and one run for an id', async () => {
    const file = [
      'pipeline: {name: dispatched}',
      'inputs: {target: {type: choice, options: [staging, production], default: staging}}',
      'stages: {show: {run: \'cat version; echo "to $INPUT_TARGET"; git rev-parse HEAD\'}}',
    ].join('\n');
    const commit = repository.commit({ '.pipeline.yaml': file, version: 'dispatched\n' });
    const payload = githubPush({ url: repository.url, commit, repository: 'acme/dispatched' });
    await post(payload, { 'x-github-event': 'push', 'x-github-delivery': 'before the dispatch' });
    const asked = {
      repository: 'acme/dispatched',
      ref: 'main',
      inputs: [{ key: 'target', value: 'production' }],
    };
    const { data, errors } = await server.graphql<Dispatched>(DISPATCH, asked);
    expect(errors).toBeUndefined();
    const { run } = data.dispatchPipeline;
    expect(run).toMatchObject({
      ...{ status: 'SUCCESS', trigger: 'api', trusted: true, repository: 'acme/dispatched', ref: 'refs/heads/main' },
      ...{ commit, source: '.pipeline.yaml', inputs: [{ key: 'target', value: 'production' }] },
    });
    expect(await linesOf(run.id)).toEqual(['dispatched', 'to production', commit]);
    repository.commit({ '.pipeline.yaml': file, version: 'later\n' });
    const again = await server.graphql<Dispatched>(DISPATCH, { ...asked, runId: run.id });
    expect(again.data.dispatchPipeline.run).toEqual(run);
    for (const wrong of [
      { ...asked, ref: 'gone' },
      { ...asked, inputs: [{ key: 'target', value: 'nowhere' }] },
      { ...asked, inputs: [{ key: '__proto__', value: 'x' }] },
      { ...asked, repository: 'acme' },
      { ...asked, repository: 'acme/other', runId: run.id },
      { ref: 'main' },
    ]) {
      const refused = await server.graphql<Dispatched>(DISPATCH, wrong);
      expect(refused.errors?.[0]?.extensions?.code, JSON.stringify(wrong)).toBe('BAD_USER_INPUT');
    }
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [CLI, 'dispatch', 'git_host_a/acme/dispatched', 'main', '--server', server.url],
      { env: { ...process.env, SERVICE_API_KEY: server.apiKey } },
    );
    expect(stdout).toContain('to staging');
  });

  it('a user has it of connected repositories alone', async () => {
    const token = await signAccessToken(JWT_SECRET, {
      sub: '01932c07-0000-7000-8000-000000000002',
      sid: 's2',
      email: 'd@example.com',
      tier: 'free',
      admin: false,
      at: Date.now(),
    });
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: DISPATCH, variables: { repository: 'acme/dispatched', ref: 'main' } }),
    });
    const { errors } = (await response.json()) as { errors?: { extensions: { code: string } }[] };
    expect(errors?.[0]?.extensions.code).toBe('NOT_FOUND');
  });
});

/** From a push to what its stages see, over each way that a repository can be read. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumbServer, Repository, smartServer, temporaryFolder, type TestServer } from '@penstock/git/testing';
import { startServer, type RunningServer } from '../support/server.ts';

const SECRET = 'canary-p@ssword';
const PIPELINE = `engine: "1"
pipeline:
  name: at the commit
stages:
  first:
    outputs: [file, commit, clean, origin, ref]
    run:
      - echo "file=$(cat file)" >>"$SERVICE_OUTPUT"
      - echo "commit=$(git rev-parse HEAD)" >>"$SERVICE_OUTPUT"
      - echo "clean=[$(git status --porcelain)]" >>"$SERVICE_OUTPUT"
      - echo "origin=$(git remote get-url origin)" >>"$SERVICE_OUTPUT"
      - echo "ref=$PENSTOCK_REF" >>"$SERVICE_OUTPUT"
      - echo made >made
  shared:
    after: first
    run: test "$(cat made)" = made
  fresh:
    after: first
    workspace: fresh
    outputs: [file]
    run:
      - test ! -e made
      - echo "file=$(cat file)" >>"$SERVICE_OUTPUT"
`;

let folder: string;
let repository: Repository;
let server: RunningServer;
let smart: TestServer;
let dumb: TestServer;
let locked: TestServer;

beforeAll(async () => {
  folder = temporaryFolder();
  repository = new Repository(join(folder, 'repository'));
  for (const name of ['first', 'second', 'third']) repository.commit({ '.pipeline.yaml': PIPELINE, file: name }, name);
  repository.git('update-server-info');
  [smart, dumb, locked] = await Promise.all([
    smartServer(folder, { protocol: 0 }),
    dumbServer(folder),
    smartServer(folder, { password: SECRET }),
  ]);
  const credentials = join(folder, 'credentials');
  writeFileSync(credentials, `http://user:${encodeURIComponent(SECRET)}@127.0.0.1:${locked.port}\n`, { mode: 0o600 });
  mkdirSync(join(folder, 'data'));
  server = await startServer({
    dataDir: join(folder, 'data'),
    env: { SERVICE_GIT_CREDENTIALS_FILE: credentials, SERVICE_WEBHOOK_WAIT_SECS: '60' },
  });
});
afterAll(async () => {
  await server.stop();
  for (const one of [smart, dumb, locked]) await one.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

interface Answer {
  readonly status: string;
  readonly run_id: string | null;
  readonly error?: { readonly code: string };
}

async function push(cloneUrl: string, commit: string, ref = 'refs/heads/main'): Promise<Answer> {
  const response = await fetch(`${server.url}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-github-event': 'push' },
    body: JSON.stringify({
      ref,
      after: commit,
      before: '0'.repeat(40),
      repository: { full_name: 'a/b', clone_url: cloneUrl },
      head_commit: { id: commit, message: 'a push' },
      commits: [],
    }),
  });
  return (await response.json()) as Answer;
}

async function outputsOf(id: string | null): Promise<Record<string, Record<string, string>>> {
  const { data } = await server.graphql<{
    run: { stages: { name: string; outputs: { key: string; value: string }[] }[] };
  }>('query ($id: String!) { run(id: $id) { stages { name outputs { key value } } } }', { id });
  return Object.fromEntries(
    data.run.stages.map(({ name, outputs }) => [
      name,
      Object.fromEntries(outputs.map(({ key, value }) => [key, value])),
    ]),
  );
}

describe('the stages of a push', () => {
  it.each([
    ['file://', () => repository.url],
    ['smart http that gives commits only by their refs', () => `${smart.url}/repository/.git`],
    ['dumb http', () => `${dumb.url}/repository/.git`],
    ['http with credentials', () => `${locked.url}/repository/.git`],
  ])('see its commit, which is no head of a branch, over %s', async (_way, urlOf) => {
    const url = urlOf();
    const commit = repository.git('rev-parse', 'main~1');
    const answer = await push(url, commit);
    expect(answer).toMatchObject({ status: 'Success', run_id: expect.any(String) });
    expect(await outputsOf(answer.run_id)).toEqual({
      first: { file: 'second', commit, clean: '[]', origin: url, ref: 'refs/heads/main' },
      shared: {},
      fresh: { file: 'second' },
    });
  });

  it.each(['refs/heads/$(touch pwn)', 'refs/heads/`touch pwn`', 'refs/heads/a;touch pwn', `refs/heads/a'"b`])(
    'the stages see the ref %s as text',
    async (ref) => {
      const answer = await push(repository.url, repository.git('rev-parse', 'main'), ref);
      expect(answer).toMatchObject({ status: 'Success' });
      expect((await outputsOf(answer.run_id))['first']).toMatchObject({ ref });
      // Meanwhile workspaces are removed, of which it complains.
      expect(spawnSync('find', [folder, '-name', 'pwn'], { encoding: 'utf8' }).stdout).toBe('');
    },
  );
});

it.each([
  'http://169.254.169.254/a/b',
  'ext::sh -c id',
  '--upload-pack=touch x',
  'ssh://-oProxyCommand=x/a',
  'https://user:pass@github.com/a/b',
])('a push that names %j starts nothing', async (url) => {
  expect(await push(url, 'a'.repeat(40))).toMatchObject({
    status: 'Failed',
    run_id: null,
    error: { code: 'address_not_allowed' },
  });
});

it('no credential is in the log of the server or in its data folder', async () => {
  expect(locked.requests.some(({ authorization }) => authorization !== undefined)).toBe(true);
  await server.stop();
  for (const canary of [SECRET, encodeURIComponent(SECRET), Buffer.from(`user:${SECRET}`).toString('base64')]) {
    expect(server.output()).not.toContain(canary);
    expect(
      execFileSync('sh', ['-c', `grep -rlF -e '${canary}' ${join(folder, 'data')} || true`], { encoding: 'utf8' }),
    ).toBe('');
  }
});

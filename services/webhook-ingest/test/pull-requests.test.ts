/** Pull requests of both hosts, from the delivery to the run and its status; forks and newer heads (P27). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IngestCalls } from '@penstock/bus';
import { answerCalls, callService } from '@penstock/service';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFakeHost, type FakeHost } from './fake-host.ts';
import {
  githubPull,
  githubPush,
  githubSignature,
  gitlabMerge,
  makeRepository,
  pipelineText,
  type PullOptions,
  type TestRepository,
} from './repository.ts';
import { makeWorld, type Answer, type RunningIngest, type World } from './world.ts';

const LONG = { timeout: 120_000 };
const SECRETS = { secrets: { git_host_a: 'secret', git_host_b: 'token' } };
let world: World;
let host: FakeHost;
let repository: TestRepository;
let base: string;

beforeAll(async () => {
  world = await makeWorld();
  host = await startFakeHost();
  answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
});
afterAll(async () => {
  await world.close();
  await host.close();
});
beforeEach(() => {
  repository?.remove();
  repository = makeRepository();
  base = repository.commit({ '.pipeline.yaml': pipelineText('demo'), 'docs/a.md': 'a', 'src/a.js': 'a' });
});
afterAll(() => repository?.remove());

/** A commit on top of the base that no branch leads to, as the head of a pull request. */
function head(files: Record<string, string>, { number = 7, kind = 'pull' } = {}): string {
  repository.git('checkout', '-q', '--detach', base);
  const commit = repository.commit({
    '.pipeline.yaml': pipelineText('demo'),
    'docs/a.md': 'a',
    'src/a.js': 'a',
    ...files,
  });
  repository.git('update-ref', `refs/${kind === 'pull' ? 'pull' : 'merge-requests'}/${number}/head`, commit);
  repository.git('checkout', '-q', 'main');
  return commit;
}

let count = 0;
function github(
  ingest: RunningIngest,
  options: Partial<PullOptions> & { readonly commit: string },
  event = 'pull_request',
): Promise<Answer> {
  const text = JSON.stringify(githubPull({ url: repository.url, ...options }));
  return ingest.send(text, {
    'x-github-event': event,
    'x-github-delivery': `p${(count += 1)}`,
    'x-hub-signature-256': githubSignature(text, 'secret'),
  });
}
function gitlab(
  ingest: RunningIngest,
  options: Partial<Parameters<typeof gitlabMerge>[0]> & { readonly commit: string },
): Promise<Answer> {
  return ingest.send(gitlabMerge({ url: repository.url, ...options }), {
    'x-gitlab-event': 'Merge Request Hook',
    'x-gitlab-event-uuid': `p${(count += 1)}`,
    'x-gitlab-token': 'token',
  });
}
const view = (runId: unknown) => world.reads.view(String(runId), ['service']);

describe('a pull request', () => {
  it('of GitHub runs at its head, as its actor, trusted, and its status is written to that commit', LONG, async () => {
    const statusHosts = { git_host_a: { apiUrl: host.url, token: 'host-token' } };
    const ingest = await world.ingest({ ...SECRETS, statusHosts });
    const commit = head({ new: 'x' });
    const { status, body } = await github(ingest, { commit });
    expect([status, body]).toEqual([
      200,
      {
        accepted: true,
        provider: 'git_host_a',
        repository: 'acme/demo',
        ref: 'refs/pull/7/head',
        commit,
        run_id: expect.any(String),
        status: 'Success',
        source: '.pipeline.yaml',
      },
    ]);
    expect(await view(body.run_id)).toMatchObject({
      trigger: 'pull_request',
      trusted: true,
      actor: 'ada',
      ref: 'refs/pull/7/head',
      commit,
      pullRequest: { number: 7, branch: 'main', fork: false, sequence: expect.any(Number) },
    });
    await expect.poll(() => host.statesOf(commit).at(-1), { timeout: 30_000 }).toBe('success');
    expect(host.told.at(-1)).toMatchObject({
      path: `/repos/acme/demo/statuses/${commit}`,
      body: { context: 'penstock/demo/pull_request' },
    });
  });

  it(
    'of GitLab runs where it is opened or has new commits, and is Ignored where only its text changed',
    LONG,
    async () => {
      const ingest = await world.ingest(SECRETS);
      const commit = head({ new: 'y' }, { kind: 'merge' });
      expect((await gitlab(ingest, { commit })).body).toMatchObject({
        provider: 'git_host_b',
        ref: 'refs/merge-requests/7/head',
        commit,
        status: 'Success',
      });
      expect((await gitlab(ingest, { commit, action: 'update', oldrev: base })).body).toMatchObject({
        status: 'Success',
      });
      for (const ignored of [
        { action: 'update' },
        { action: 'merge', state: 'merged' },
        { action: 'close', state: 'closed' },
        { action: 'approved' },
      ])
        expect((await gitlab(ingest, { commit, ...ignored })).body, ignored.action).toMatchObject({
          accepted: false,
          status: 'Ignored',
          run_id: null,
        });
    },
  );

  it('that is closed, or to which something else happened, is Ignored', LONG, async () => {
    const ingest = await world.ingest(SECRETS);
    const commit = head({ new: 'z' });
    for (const ignored of [
      { action: 'closed', state: 'closed' },
      { action: 'labeled', state: 'closed' },
      { action: 'edited' },
    ])
      expect((await github(ingest, { commit, ...ignored })).body, ignored.action).toMatchObject({
        accepted: false,
        status: 'Ignored',
        run_id: null,
      });
  });

  it('is held to on.pull_request: branches, types, and paths against where it left its branch', LONG, async () => {
    const ingest = await world.ingest(SECRETS);
    const on = "on:\n  pull_request: {branches: main, paths: ['src/**']}\n";
    // The branch has gone on: what it changed there is nothing of the pull request.
    repository.commit({ '.pipeline.yaml': pipelineText('demo'), 'docs/a.md': 'a', 'src/a.js': 'changed on main' });
    const inDocs = head({ '.pipeline.yaml': pipelineText('demo', on), 'docs/a.md': 'changed' });
    expect((await github(ingest, { commit: inDocs })).body).toMatchObject({
      status: 'Skipped',
      source: '.pipeline.yaml',
    });
    const inSource = head({ '.pipeline.yaml': pipelineText('demo', on), 'src/a.js': 'changed' }, { number: 8 });
    expect((await github(ingest, { commit: inSource, number: 8 })).body).toMatchObject({ status: 'Success' });
    expect((await github(ingest, { commit: inSource, number: 8, branch: 'other' })).body['status']).toBe('Skipped');
    expect((await github(ingest, { commit: inSource, number: 8, action: 'labeled' })).body['status']).toBe('Skipped');
    // A branch that is not there any more: nobody knows where it was left.
    const elsewhere = head(
      { '.pipeline.yaml': pipelineText('demo', on.replace('branches: main, ', '')), 'docs/a.md': 'c' },
      { number: 9 },
    );
    expect((await github(ingest, { commit: elsewhere, number: 9, branch: 'gone' })).body['status']).toBe('Success');
  });

  it(
    'starts no run of a file that names pushes alone, nor a push one of a file that names pull requests alone',
    LONG,
    async () => {
      const ingest = await world.ingest(SECRETS);
      const commit = head({ '.pipeline.yaml': pipelineText('demo', 'on: {push: {}}\n') });
      expect((await github(ingest, { commit })).body['status']).toBe('Skipped');
      const pushed = repository.commit({ '.pipeline.yaml': pipelineText('demo', 'on: {pull_request: {}}\n') });
      const text = JSON.stringify(githubPush({ url: repository.url, commit: pushed }));
      const headers = {
        'x-github-event': 'push',
        'x-github-delivery': `p${(count += 1)}`,
        'x-hub-signature-256': githubSignature(text, 'secret'),
      };
      expect((await ingest.send(text, headers)).body['status']).toBe('Skipped');
    },
  );

  it('that lacks what it has to have is refused', LONG, async () => {
    const ingest = await world.ingest(SECRETS);
    const commit = head({ new: 'q' });
    for (const bad of [{ number: 0 }, { number: 1.5 }, { commit: 'x' }, { branch: '' }])
      expect((await github(ingest, { commit, ...bad })).status, JSON.stringify(bad)).toBe(400);
  });
});

describe('the head of a pull request', () => {
  it('P27: is waited for where its ref stands elsewhere, and runs as soon as it is there', LONG, async () => {
    const ingest = await world.ingest(SECRETS);
    const before = head({ new: 'before' });
    const commit = head({ new: 'after' });
    repository.git('update-ref', 'refs/pull/7/head', before);
    const looks = world.looks.length;
    const answer = github(ingest, { commit });
    await expect.poll(() => world.looks.length, { timeout: 20_000 }).toBeGreaterThan(looks);
    repository.git('update-ref', 'refs/pull/7/head', commit);
    expect((await answer).body).toMatchObject({ status: 'Success', commit });
  });

  it('P27: that moved on, as its host has told since, is not waited for', LONG, async () => {
    const ingest = await world.ingest({ ...SECRETS, waitSecs: 0 });
    const old = head({ new: 'old' });
    const commit = head({ new: 'new' });
    const looks = world.looks.length;
    const stale = (await github(ingest, { commit: old })).body.run_id;
    // It waits by then for its ref to get there, with nothing behind it.
    await expect.poll(() => world.looks.length, { timeout: 20_000 }).toBeGreaterThan(looks);
    const next = (await github(ingest, { commit, action: 'synchronize', before: old })).body.run_id;
    await expect.poll(() => view(next), { timeout: 30_000 }).toMatchObject({ status: 'SUCCESS', commit });
    expect(await view(stale)).toMatchObject({ status: 'CANCELLED' });
  });

  it('P27: of a delivery that is decided about when its ref is elsewhere nothing runs', LONG, async () => {
    const ingest = await world.ingest(SECRETS);
    const commit = head({ new: 'old' });
    const { body } = await github(ingest, { commit });
    head({ new: 'new' });
    const replay = callService<IngestCalls['replay']['request'], IngestCalls['replay']['answer']>;
    const request = { id: String(body.run_id), tenants: ['service'], dryRun: true };
    const again = await replay(world.bus, 'webhook-ingest', 'replay', request);
    expect(again).toMatchObject({
      outcome: 'Cancelled',
      trace: [{ step: 'verified' }, { step: 'head', passed: false }],
    });
  });

  it('P27: a newer one cancels the runs of older ones, unless its file says otherwise', LONG, async () => {
    const ingest = await world.ingest({ ...SECRETS, waitSecs: 1 });
    world.held = true;
    const first = head({ new: '1' });
    const old = (await github(ingest, { commit: first })).body.run_id;
    const second = head({ new: '2' });
    const keeping = (await github(ingest, { commit: second, action: 'synchronize' })).body.run_id;
    expect(await view(old)).toMatchObject({ status: 'CANCELLED' });
    const third = head({ '.pipeline.yaml': pipelineText('demo', 'on: {pull_request: {cancel_superseded: false}}\n') });
    await github(ingest, { commit: third, action: 'synchronize' });
    expect((await view(keeping))?.status).not.toBe('CANCELLED');
    world.held = false;
    world.release();
  });
});

describe('a pull request from a fork', () => {
  it('waits until somebody approves it, and runs untrusted', LONG, async () => {
    const ingest = await world.ingest({ ...SECRETS, waitSecs: 1 });
    const commit = head({ new: 'fork' });
    const jobs = world.jobs.length;
    const { body } = await github(ingest, { commit, fork: true });
    expect(body).toMatchObject({ accepted: true, status: 'Queued', source: '.pipeline.yaml' });
    expect(world.jobs.length).toBe(jobs);
    await world.approve(String(body.run_id));
    await expect.poll(async () => (await view(body.run_id))?.status, { timeout: 30_000 }).toBe('SUCCESS');
    expect(await view(body.run_id)).toMatchObject({ trusted: false, trigger: 'pull_request' });
    expect(world.jobs.at(-1)?.origin).toMatchObject({ trusted: false, defaultBranch: 'trunk' });
  });

  it('of docs/examples/pull-request.yaml is tested once it is approved, and deploys nothing', LONG, async () => {
    const ingest = await world.ingest({ ...SECRETS, waitSecs: 1 });
    const example = readFileSync(join(import.meta.dirname, '../../../docs/examples/pull-request.yaml'), 'utf8');
    const commit = head({ '.pipeline.yaml': example, 'src/a.js': 'changed' });
    const { body } = await github(ingest, { commit, fork: true });
    expect(body).toMatchObject({ status: 'Queued' });
    await world.approve(String(body.run_id));
    await expect.poll(async () => (await view(body.run_id))?.status, { timeout: 30_000 }).toBe('SUCCESS');
    expect((await view(body.run_id))?.stages).toMatchObject([
      { name: 'test', status: 'SUCCESS' },
      { name: 'deploy', status: 'SKIPPED', reason: 'when' },
    ]);
  });

  it('runs at once where the operator says so, untrusted all the same; or is Ignored', LONG, async () => {
    const running = await world.ingest({ ...SECRETS, forks: 'run' });
    const commit = head({ new: 'fork' });
    const { body } = await github(running, { commit, fork: true });
    expect(body['status']).toBe('Success');
    expect(await view(body.run_id)).toMatchObject({ trusted: false });
    const ignoring = await world.ingest({ ...SECRETS, forks: 'ignore' });
    expect((await github(ignoring, { commit, fork: true })).body).toMatchObject({
      accepted: false,
      status: 'Ignored',
      run_id: null,
    });
    expect((await github(ignoring, { commit })).body['status']).toBe('Success');
    expect((await gitlab(ignoring, { commit, fork: true })).body).toMatchObject({ status: 'Ignored' });
  });
});

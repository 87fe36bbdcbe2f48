import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MirrorCache } from '../src/mirrors.ts';
import { dumbServer, mirrorsIn, Repository, smartServer, temporaryFolder, type TestServer } from './repositories.ts';

const PIPELINE = '.pipeline.yaml';
const BYTES_MAX = 512 * 1024;

let folder: string;
const closing: { close(): Promise<void> }[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

function mirrors(more: Parameters<typeof mirrorsIn>[1] = {}, name = 'mirrors'): MirrorCache {
  const opened = mirrorsIn(join(folder, name), more);
  closing.push(opened);
  return opened;
}

async function keep<T extends { close(): Promise<void> }>(server: Promise<T>): Promise<T> {
  const started = await server;
  closing.push(started);
  return started;
}

/** `main` with 60 commits, the file in each of them telling which. */
function longRepository(): { repository: Repository; commits: readonly string[] } {
  const repository = new Repository(join(folder, 'repository'));
  return {
    repository,
    commits: repository.commitMany(60, (index) => ({
      path: PIPELINE,
      text: `commit ${index}`,
      message: `message ${index}\n`,
    })),
  };
}

async function textOf(opened: MirrorCache, url: string, commit: string): Promise<string | undefined> {
  return (await (await opened.fetch({ url, commit })).readFile([PIPELINE], BYTES_MAX))?.text;
}

type Transport = (repository: Repository) => Promise<string>;

const TRANSPORTS: readonly (readonly [name: string, url: Transport])[] = [
  ['file://', (repository) => Promise.resolve(repository.url)],
  ['a plain path', (repository) => Promise.resolve(repository.folder)],
  ['smart http', async () => `${(await keep(smartServer(folder))).url}/repository/.git`],
  [
    'smart http that gives commits only by their refs',
    async () => `${(await keep(smartServer(folder, { protocol: 0 }))).url}/repository/.git`,
  ],
  [
    'dumb http',
    async (repository) => {
      repository.git('update-server-info');
      return `${(await keep(dumbServer(folder))).url}/repository/.git`;
    },
  ],
];

describe.each(TRANSPORTS)('over %s', (_name, transport) => {
  it('a ref is found by its whole name, and one of a pull request, a longer name or a tag is not taken for it', async () => {
    const { repository } = longRepository();
    const head = repository.git('rev-parse', 'HEAD').trim();
    for (const ref of ['refs/heads/proof', 'refs/pull/1/head', 'refs/pull/refs/heads/other', 'refs/tags/other'])
      repository.git('update-ref', ref, 'HEAD');
    const opened = mirrors();
    const url = await transport(repository);
    expect(await opened.findRef({ url, ref: 'refs/heads/proof' })).toBe(head);
    expect(await opened.findRef({ url, ref: 'refs/heads/other' })).toBeNull();
    expect(await opened.findRef({ url, ref: 'refs/heads/roof' })).toBeNull();
    await expect(opened.findRef({ url: `${url}-none`, ref: 'refs/heads/proof' })).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:not_found|denied)$/u),
    });
  });

  it.each([
    ['whole', false],
    ['partial', true],
  ] as const)(
    'a commit is fetched that is not the head of a branch, and its file, message and tree are right (%s)',
    async (_kind, partial) => {
      const { repository, commits } = longRepository();
      const url = await transport(repository);
      const opened = mirrors({ partial });
      for (const index of [59, 3, 30]) {
        const commit = commits[index] ?? '';
        const fetched = await opened.fetch({ url, commit });
        expect(fetched.commit).toBe(commit);
        expect(await fetched.readFile(['.other', PIPELINE], BYTES_MAX)).toEqual({
          path: PIPELINE,
          text: `commit ${index}`,
        });
        expect(await fetched.message()).toBe(`message ${index}\n`);
      }
      const later = repository.commit({ [PIPELINE]: 'later' });
      repository.git('update-server-info');
      expect(await textOf(opened, url, later)).toBe('later');
    },
  );

  it('what is not there is told apart', async () => {
    const { repository } = longRepository();
    const url = await transport(repository);
    const opened = mirrors();
    await expect(opened.fetch({ url, commit: 'b'.repeat(40) })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('commit'),
    });
    await expect(
      opened.fetch({ url: url.replace('repository', 'no-repository'), commit: 'b'.repeat(40) }),
    ).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('no such repository') });
  });
});

it('a commit arrives alone, without its history and without other branches', async () => {
  const { repository, commits } = longRepository();
  const opened = mirrors();
  await opened.fetch({ url: repository.url, commit: commits[59] ?? '' });
  const [name = ''] = execFileSync('ls', [join(folder, 'mirrors')], { encoding: 'utf8' })
    .trim()
    .split('\n');
  const listed = execFileSync('git', [`--git-dir=${join(folder, 'mirrors', name)}`, 'log', '--all', '--format=%H'], {
    encoding: 'utf8',
  }).trim();
  expect(listed.split('\n')).toEqual([commits[59]]);
});

it('a tag stands for its commit, also one that no branch leads to', async () => {
  const { repository } = longRepository();
  repository.git('checkout', '-q', '--detach');
  const commit = repository.commit({ [PIPELINE]: 'tagged' });
  repository.git('tag', '-a', '-m', 'a tag', 'v1');
  const tag = repository.git('rev-parse', 'v1');
  const url = `${(await keep(smartServer(folder, { protocol: 0 }))).url}/repository/.git`;
  for (const wanted of [commit, tag]) {
    const fetched = await mirrors({}, wanted).fetch({ url, commit: wanted });
    expect(fetched.commit).toBe(commit);
    expect(await fetched.readFile([PIPELINE], 100)).toEqual({ path: PIPELINE, text: 'tagged' });
  }
});

it('a repository with ids of 64 digits is fetched like any other', async () => {
  const repository = new Repository(join(folder, 'repository'), 'sha256');
  const commit = repository.commit({ [PIPELINE]: 'long ids' });
  expect(commit).toHaveLength(64);
  const opened = mirrors();
  const fetched = await opened.fetch({ url: repository.url, commit });
  expect(await fetched.readFile([PIPELINE], 100)).toEqual({ path: PIPELINE, text: 'long ids' });
  await fetched.checkout(join(folder, 'workspace'));
  expect(execFileSync('git', ['-C', join(folder, 'workspace'), 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()).toBe(
    commit,
  );
});

it('a commit that is not small comes with its own objects alone, from and to folders of any name', async () => {
  const repository = new Repository(join(folder, 'repository'));
  // Left to git for its attributes.
  const before = repository.commit({ '.gitattributes': '*.bin binary\n', 'a.bin': randomBytes(10_000) });
  const commit = repository.commit({ 'a.bin': randomBytes(10_000) });
  const opened = mirrors({}, 'a "strange": folder\\ of ü');
  await opened.fetch({ url: repository.url, commit: before });
  const workspace = join(folder, 'the: "workspace"');
  await (await opened.fetch({ url: repository.url, commit })).checkout(workspace);
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: workspace, encoding: 'utf8' }).trim();
  expect(git('rev-list', '--objects', '--all', 'HEAD').split('\n')).toHaveLength(4);
  expect(git('cat-file', '--batch-all-objects', '--batch-check').split('\n')).toHaveLength(4);
  expect(git('status', '--porcelain')).toBe('');
  git('fsck', '--strict');
  expect(readdirSync(join(workspace, '.git', 'objects', 'info'))).toEqual([]);
});

it('a partial mirror leaves the contents of files where they are, until one is read', async () => {
  const repository = new Repository(join(folder, 'repository'));
  repository.git('config', 'uploadpack.allowFilter', 'true');
  const commit = repository.commit({ [PIPELINE]: 'small', 'assets/large.bin': randomBytes(4 * 1024 ** 2) });
  const opened = mirrors({ partial: true });
  const fetched = await opened.fetch({ url: repository.url, commit });
  const size = (): number =>
    Number(execFileSync('du', ['-sk', join(folder, 'mirrors')], { encoding: 'utf8' }).split('\t')[0]);
  expect(await fetched.readFile([PIPELINE], BYTES_MAX)).toEqual({ path: PIPELINE, text: 'small' });
  const before = size();
  await fetched.checkout(join(folder, 'workspace'));
  expect(execFileSync('git', ['-C', join(folder, 'workspace'), 'status', '--porcelain'], { encoding: 'utf8' })).toBe(
    '',
  );
  expect(size()).toBeGreaterThan(before);
});

describe('fetches', () => {
  it('of one commit at a time are one, and what one caller gives up the others still get', async () => {
    const { commits } = longRepository();
    const server = await keep(smartServer(folder));
    const url = `${server.url}/repository/.git`;
    const opened = mirrors();
    const given = new AbortController();
    const first = opened.fetch({ url, commit: commits[59] ?? '', signal: given.signal });
    const others = Array.from({ length: 5 }, () => opened.fetch({ url, commit: commits[59] ?? '' }));
    given.abort(new Error('no longer wanted'));
    await expect(first).rejects.toThrow('no longer wanted');
    for (const other of await Promise.all(others)) expect(other.commit).toBe(commits[59]);
    expect(packs(server)).toBe(1);
    // And what is there is not asked for again.
    await opened.fetch({ url, commit: commits[59] ?? '' });
    await opened.close();
    await mirrors().fetch({ url, commit: commits[59] ?? '' });
    expect(packs(server)).toBe(1);
  });

  it('of many commits of one repository at once all come', async () => {
    const { repository, commits } = longRepository();
    const opened = mirrors();
    const texts = await Promise.all(commits.map((commit) => textOf(opened, repository.url, commit)));
    expect(texts).toEqual(commits.map((_, index) => `commit ${index}`));
  });
});

/** How often a pack was asked for. */
function packs(server: TestServer): number {
  return server.requests.filter(({ line }) => line.startsWith('POST')).length;
}

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkOutSmall, startCheckoutThread } from '../src/checkout.ts';
import type { MirrorCache } from '../src/mirrors.ts';
import { Objects, ObjectReaders } from '../src/objects.ts';
import { readSmallCommit, type SmallCommit } from '../src/small-commit.ts';
import { SmallCommits } from '../src/small-commits.ts';
import { WRITING, writeCheckout } from '../src/write-checkout.ts';
import { mirrorsIn, Repository, temporaryFolder } from './repositories.ts';

const isRoot = process.getuid?.() === 0;
let folder: string;
let repository: Repository;
const closing: { close(): unknown }[] = [];
beforeEach(() => {
  folder = temporaryFolder();
  repository = new Repository(join(folder, 'repository'));
});
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

function mirrors(): MirrorCache {
  const opened = mirrorsIn(join(folder, 'mirrors'));
  closing.push(opened);
  return opened;
}

function objects(): Objects {
  const opened = new Objects(join(repository.folder, '.git'));
  closing.push(opened);
  return opened;
}

const smallOf = (commit: string) => readSmallCommit(objects(), commit);

function git(workspace: string, ...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: workspace,
    encoding: 'utf8',
    env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_COUNT: '0' },
  }).trim();
}

function varied(): string {
  // As git leaves the place of a module that is not fetched.
  mkdirSync(join(repository.folder, 'sub/module'), { recursive: true });
  writeFileSync(join(repository.folder, 'run.sh'), '#!/bin/sh\n');
  chmodSync(join(repository.folder, 'run.sh'), 0o755);
  repository.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},sub/module`);
  return repository.commit({
    'a.txt': 'a\n',
    'a/b/c/deep': randomBytes(70_000),
    'a-b': 'sorted before a/',
    'same as a.txt': 'a\n',
    empty: '',
    link: { link: 'a/b' },
    '.pipeline.yaml': 'stages: {}\n',
  });
}

describe('a workspace at a small commit', () => {
  it('is what git would have made of it, and git finds nothing in it that changed', async () => {
    const commit = varied();
    const workspace = join(folder, 'workspace');
    await (await mirrors().fetch({ url: repository.url, commit })).checkout(workspace);
    git(workspace, 'fsck', '--strict');
    git(workspace, 'diff-files', '--quiet', '--', ':!sub');
    expect(git(workspace, 'status', '--porcelain')).toBe('');
    expect(git(workspace, 'rev-parse', 'HEAD')).toBe(commit);
    expect(git(workspace, 'ls-files', '--stage')).toBe(
      repository.git('ls-tree', '-r', '--format=%(objectmode) %(objectname) 0%x09%(path)', commit),
    );
    expect(git(workspace, 'config', 'remote.origin.url')).toBe(repository.url);
    expect(git(workspace, 'rev-list', '--count', 'HEAD')).toBe('1');
    expect(readlinkSync(join(workspace, 'link'))).toBe('a/b');
    expect(lstatSync(join(workspace, 'run.sh')).mode & 0o111).toBe(0o111);
    expect(lstatSync(join(workspace, 'a.txt')).mode & 0o111).toBe(0);
    expect(readdirSync(join(workspace, 'sub', 'module'))).toEqual([]);
    const linked = execFileSync('find', [workspace, '-type', 'f', '-links', '+1'], { encoding: 'utf8' });
    expect(linked).toBe('');
    git(workspace, 'fetch', '-q', 'origin');
    writeFileSync(join(workspace, 'a.txt'), 'b\n');
    expect(git(workspace, 'status', '--porcelain')).toBe('M a.txt');
  });

  it('is that also where most of it was read for another commit, whose workspaces stay as they were', async () => {
    const opened = mirrors();
    const checkOut = async (commit: string, name: string): Promise<string> => {
      const workspace = join(folder, name);
      await (await opened.fetch({ url: repository.url, commit })).checkout(workspace);
      git(workspace, 'fsck', '--strict');
      expect(git(workspace, 'status', '--porcelain')).toBe('');
      expect(git(workspace, 'ls-files', '--stage')).toBe(
        repository.git('ls-tree', '-r', '--format=%(objectmode) %(objectname) 0%x09%(path)', commit),
      );
      return readFileSync(join(workspace, 'a.txt'), 'utf8');
    };
    const first = varied();
    const second = repository.commit({ 'a.txt': 'changed\n' });
    expect(await checkOut(first, 'one')).toBe('a\n');
    expect(await checkOut(second, 'two')).toBe('changed\n');
    expect(await checkOut(first, 'three')).toBe('a\n');
  });

  it('is not written into a folder that has something, which stays', async () => {
    const fetched = await mirrors().fetch({ url: repository.url, commit: varied() });
    const workspace = join(folder, 'workspace');
    mkdirSync(workspace);
    writeFileSync(join(workspace, 'mine'), '');
    await expect(fetched.checkout(workspace)).rejects.toThrow('into an empty folder only');
    expect(readdirSync(workspace)).toEqual(['mine']);
  });

  it('takes nothing of a folder away that its thread has not come to: one that is closed, or called off before', async () => {
    const commit = (await smallOf(varied()))?.commit;
    if (commit === undefined) throw new Error('it is small');
    const workspace = join(folder, 'workspace');
    mkdirSync(workspace);
    writeFileSync(join(workspace, 'mine'), '');
    const thread = startCheckoutThread();
    closing.push(thread);
    const abort = new AbortController();
    const options = { url: repository.url, folder: workspace, owner: undefined, signal: abort.signal };
    const called = checkOutSmall(thread, commit, options);
    abort.abort(new Error('called off'));
    await expect(called).rejects.toThrow('called off');
    expect(readdirSync(workspace)).toEqual(['mine']);
    const { signal } = new AbortController();
    const underWay = checkOutSmall(thread, commit, { ...options, signal });
    const closed = thread.close();
    await expect(underWay).rejects.toThrow('was closed');
    await closed;
    await expect(checkOutSmall(thread, commit, { ...options, signal })).rejects.toThrow('is closed');
    expect(readdirSync(workspace)).toEqual(['mine']);
  });

  it('is not begun where it was called off, and the empty folder that it would have been in is gone', () => {
    const workspace = join(folder, 'workspace');
    const options = { url: repository.url, folder: workspace, owner: undefined };
    const state = new Int32Array(new SharedArrayBuffer(4)).fill(WRITING.calledOff);
    expect(() => writeCheckout({ commit: {} as SmallCommit, options, state })).toThrow('no longer wanted');
    expect(readdirSync(folder)).not.toContain('workspace');
    expect(state[0]).toBe(WRITING.calledOff);
  });

  it('is one that git works on: it makes the folders that were left out when it needs them', async () => {
    const commit = varied();
    const workspace = join(folder, 'workspace');
    await (await mirrors().fetch({ url: repository.url, commit })).checkout(workspace);
    const as = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
    git(workspace, 'switch', '-q', '-c', 'topic/one');
    writeFileSync(join(workspace, 'a.txt'), 'b\n');
    git(workspace, ...as, 'commit', '-q', '-a', '-m', 'another');
    git(workspace, 'tag', 'v1');
    git(workspace, ...as, 'stash', 'list');
    git(workspace, 'pack-refs', '--all', '--prune');
    git(workspace, 'gc', '-q', '--prune=now');
    git(workspace, 'fsck', '--strict');
    git(workspace, 'worktree', 'add', '-q', join(folder, 'beside'), 'v1');
    git(workspace, 'clone', '-q', workspace, join(folder, 'cloned'));
    expect(git(join(folder, 'cloned'), 'rev-parse', 'HEAD~1')).toBe(commit);
  });

  it('is made without a process once the commit was read, and nothing of one is seen in another', async () => {
    const commit = varied();
    const fetched = await mirrors().fetch({ url: repository.url, commit });
    const [first, second] = [join(folder, 'first'), join(folder, 'second')];
    await fetched.checkout(first);
    writeFileSync(join(first, 'a.txt'), 'changed in place');
    const path = process.env['PATH'];
    process.env['PATH'] = '';
    try {
      await fetched.checkout(second);
      expect(await fetched.readFile(['.pipeline.yaml'], 1_000)).toEqual({
        path: '.pipeline.yaml',
        text: 'stages: {}\n',
      });
      expect(await fetched.message()).toBe('a commit\n');
    } finally {
      process.env['PATH'] = path;
    }
    expect(readFileSync(join(second, 'a.txt'), 'utf8')).toBe('a\n');
    git(second, 'fsck', '--strict');
  });

  it.runIf(isRoot)('belongs to its user, all of it', async () => {
    const fetched = await mirrors().fetch({ url: repository.url, commit: varied() });
    const workspace = join(folder, 'workspace');
    expect(await fetched.checkout(workspace, { owner: { uid: 300_000, gid: 300_001 } })).toBe(true);
    const others = execFileSync('find', [workspace, '!', '-uid', '300000', '-o', '!', '-gid', '300001'], {
      encoding: 'utf8',
    });
    expect(others).toBe('');
  });

  it('is left to git where attributes change its files', async () => {
    const commit = repository.commit({ '.gitattributes': '*.txt text eol=crlf\n', 'a.txt': 'a\nb\n' });
    expect(await smallOf(commit)).toBeNull();
    const workspace = join(folder, 'workspace');
    await (await mirrors().fetch({ url: repository.url, commit })).checkout(workspace);
    expect(readFileSync(join(workspace, 'a.txt'), 'utf8')).toBe('a\r\nb\r\n');
  });

  it('is over when it is called off, and gone', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`file-${index}`, '']));
    const fetched = await mirrors().fetch({ url: repository.url, commit: repository.commit(files) });
    const workspace = join(folder, 'workspace');
    await fetched.checkout(join(folder, 'before'));
    const abort = new AbortController();
    const checkout = fetched.checkout(workspace, { signal: abort.signal });
    abort.abort(new Error('called off'));
    await expect(checkout).rejects.toThrow('called off');
    expect(readdirSync(folder)).not.toContain('workspace');
  });
});

describe('a commit is not small', () => {
  it.each([
    ['of too many files', () => Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${index}`, '']))],
    [
      'of too many folders',
      () => Object.fromEntries(Array.from({ length: 251 }, (_, index) => [`d${index}/f`, String(index)])),
    ],
    ['of too many bytes', () => ({ noise: randomBytes(2 * 1024 ** 2) })],
    [
      'of one blob many times',
      () => Object.fromEntries([1, 2, 3].map((index) => [`f${index}`, 'x'.repeat(1024 ** 2)])),
    ],
  ])('is left to git where it consists %s', async (_what, files) => {
    expect(await smallOf(repository.commit(files()))).toBeNull();
  });

  it.each(['a\\b', 'naïve', 'git~1', '.GIT~', 'ends ', 'ends.', 'a:b', 'a\u0001'])(
    'with a name that one or another system takes for something else: %j',
    async (name) => {
      const blob = repository.git('rev-parse', `${repository.commit({ a: '' })}:a`);
      const commit = repository.commitEntries([{ mode: '100644', type: 'blob', object: blob, path: name }]);
      expect(await smallOf(commit)).toBeNull();
    },
  );
});

describe('small commits', () => {
  it('take no more memory than they may; those not asked for longest go first, and are read again', async () => {
    const commits = [1, 2, 3].map((index) => repository.commit({ noise: randomBytes(100_000), index: String(index) }));
    const small = new SmallCommits(500_000);
    let asked = 0;
    const source = objects();
    const read = async (commit = '') => {
      await small.of('mirror', commit, () => {
        asked += 1;
        return source;
      });
    };
    for (const commit of [commits[0], commits[1], commits[0], commits[2], commits[0]]) await read(commit);
    expect(asked).toBe(3);
    await read(commits[1]);
    expect(asked).toBe(4);
  });
});

describe('of the next commit of a mirror', () => {
  it('git is asked for what the one before it has not, and of another mirror for all', async () => {
    const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`folder/${index}`, `file ${index}`]));
    const commits = [repository.commit(files), repository.commit({ 'folder/3': 'changed' })];
    const small = new SmallCommits(500_000);
    const source = objects();
    const asked = vi.spyOn(source, 'content');
    const askedFor = async (mirror: string, commit = ''): Promise<number> => {
      const before = asked.mock.calls.length;
      expect((await small.of(mirror, commit, () => source))?.entries).toHaveLength(20);
      return asked.mock.calls.length - before;
    };
    expect(await askedFor('mirror', commits[0])).toBe(23);
    // The commit, its two trees and a file.
    expect(await askedFor('mirror', commits[1])).toBe(4);
    expect(await askedFor('another', commits[1])).toBe(23);
  });
});

describe('the reading of objects', () => {
  it('goes on with another git where the one before has ended', async () => {
    const commit = repository.commit({ a: '' });
    const source = objects();
    expect(await source.info(commit)).toMatchObject({ type: 'commit' });
    const asked = Promise.all([source.info(commit), source.info(commit)]);
    source.close();
    await expect(asked).rejects.toThrow('was ended');
    expect(await source.info(commit)).toMatchObject({ type: 'commit' });
    expect(await source.info('0'.repeat(40))).toBeNull();
    await expect(source.info('HEAD\ncontents HEAD')).rejects.toThrow('by its id');
  });

  it('of many repositories keeps a bounded number of them open', async () => {
    const readers = new ObjectReaders();
    closing.push({ close: () => readers.closeAll() });
    const first = readers.of('first');
    for (let index = 0; index < 15; index += 1) readers.of(`other-${index}`);
    expect(readers.of('first')).toBe(first);
    for (let index = 0; index < 16; index += 1) readers.of(`more-${index}`);
    expect(readers.of('first')).not.toBe(first);
  });
});

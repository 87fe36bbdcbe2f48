import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MirrorCache } from '../src/mirrors.ts';
import { mirrorsIn, Repository, serve, smartServer, temporaryFolder } from './repositories.ts';

const PIPELINE = '.pipeline.yaml';
const EMPTY_BLOB = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391';

let folder: string;
let repository: Repository;
const closing: { close(): Promise<void> }[] = [];
beforeEach(() => {
  folder = temporaryFolder();
  repository = new Repository(join(folder, 'repository'));
});
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

function mirrors(more: Parameters<typeof mirrorsIn>[1] = {}): MirrorCache {
  const opened = mirrorsIn(join(folder, 'mirrors'), more);
  closing.push(opened);
  return opened;
}

async function checkOut(commit: string, opened = mirrors()): Promise<string> {
  const workspace = join(folder, 'workspace');
  await (await opened.fetch({ url: repository.url, commit })).checkout(workspace);
  return workspace;
}

function refusal(code: string, message = ''): unknown {
  return expect.objectContaining({ code, message: expect.stringContaining(message) });
}

describe('a pipeline file', () => {
  it.each([
    ['a link out of the repository', { [PIPELINE]: { link: '/etc/passwd' } }, 'a link'],
    ['a link to another file', { [PIPELINE]: { link: 'other' }, other: 'stages:' }, 'a link'],
    ['a folder', { [`${PIPELINE}/file`]: '' }, 'a folder'],
    ['too large', { [PIPELINE]: 'x'.repeat(1_001) }, 'larger than'],
    ['no text', { [PIPELINE]: Buffer.from([0xff, 0xfe, 0x00]) }, 'not a text'],
  ])('is refused where it is %s, and the next name is not tried', async (_what, files, message) => {
    const commit = repository.commit({ ...files, '.pipeline.yml': 'fine' });
    const fetched = await mirrors().fetch({ url: repository.url, commit });
    await expect(fetched.readFile([PIPELINE, '.pipeline.yml'], 1_000)).rejects.toEqual(refusal('bad_file', message));
  });

  it('is refused where it is a submodule', async () => {
    const commit = repository.commitEntries([
      { mode: '160000', type: 'commit', object: 'a'.repeat(40), path: PIPELINE },
    ]);
    const fetched = await mirrors().fetch({ url: repository.url, commit });
    await expect(fetched.readFile([PIPELINE], 1_000)).rejects.toEqual(refusal('bad_file', 'a submodule'));
  });

  it('is not found through a linked folder', async () => {
    const commit = repository.commit({ '.pipeline': { link: 'elsewhere' }, 'elsewhere/pipeline.yaml': 'stages:' });
    const fetched = await mirrors().fetch({ url: repository.url, commit });
    expect(await fetched.readFile(['.pipeline/pipeline.yaml'], 1_000)).toBeNull();
  });

  it('is the first there is; names are names, not patterns', async () => {
    const commit = repository.commit({ '.pipeline.yml': 'second', '.pipeline/pipeline.yaml': 'third', 'x*': 'star' });
    const fetched = await mirrors().fetch({ url: repository.url, commit });
    expect(await fetched.readFile([PIPELINE, '.pipeline.yml', '.pipeline/pipeline.yaml'], 1_000)).toEqual({
      path: '.pipeline.yml',
      text: 'second',
    });
    expect(await fetched.readFile(['*'], 1_000)).toBeNull();
    for (const path of ['../x', '/etc/passwd', 'a/./b', '', 'a\0b'])
      await expect(fetched.readFile([path], 1_000)).rejects.toEqual(refusal('bad_file'));
  });
});

describe('a workspace', () => {
  it('is a repository at the commit, with links as git has them and no hook, filter or submodule come alive', async () => {
    const commit = repository.commit({
      file: 'content\n',
      'run.sh': '#!/bin/sh\n',
      'a/b/c': '',
      out: { link: '/etc/passwd' },
      up: { link: '../../..' },
      dangling: { link: 'nowhere' },
      '.gitattributes': '*.lfs filter=lfs diff=lfs merge=lfs\n*.evil filter=evil\n',
      'large.lfs': 'version https://git-lfs.github.com/spec/v1\n',
      'x.evil': 'as it is',
      '.gitmodules': '[submodule "sub"]\n\tpath = sub\n\turl = https://github.com/a/b\n',
    });
    const workspace = await checkOut(commit);
    expect(readFileSync(join(workspace, 'file'), 'utf8')).toBe('content\n');
    expect(['out', 'up', 'dangling'].map((name) => readlinkSync(join(workspace, name)))).toEqual([
      '/etc/passwd',
      '../../..',
      'nowhere',
    ]);
    expect(readFileSync(join(workspace, 'large.lfs'), 'utf8')).toContain('git-lfs');
    expect(readFileSync(join(workspace, 'x.evil'), 'utf8')).toBe('as it is');
    expect(existsSync(join(workspace, '.git', 'hooks'))).toBe(false);
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: workspace, encoding: 'utf8' }).trim();
    expect(git('rev-parse', 'HEAD')).toBe(commit);
    expect(git('log', '-1', '--format=%s')).toBe('a commit');
    expect(git('describe', '--always')).toBe(commit.slice(0, 7));
    expect(git('remote', 'get-url', 'origin')).toBe(repository.url);
    expect(git('status', '--porcelain')).toBe('');
    git('fsck', '--strict');
    git('fetch', '-q', 'origin');
    const linked = execFileSync('find', [workspace, '-type', 'f', '-links', '+1'], { encoding: 'utf8' });
    expect(linked).toBe('');
  });

  it.each([
    ['.git', [{ mode: '040000', path: '.git' }]],
    ['.GIT', [{ mode: '040000', path: '.GIT' }]],
    ['git~1', [{ mode: '040000', path: 'git~1' }]],
    ['.g\u200cit', [{ mode: '040000', path: '.g\u200cit' }]],
    ['..', [{ mode: '040000', path: '..' }]],
    [
      'a link that a folder has the name of',
      [
        { mode: '120000', path: 'a' },
        { mode: '040000', path: 'a' },
      ],
    ],
    ['.gitmodules as a link', [{ mode: '120000', path: '.gitmodules' }]],
  ])('does not come of a tree with %s in it', async (_what, entries) => {
    const target = join(folder, 'outside');
    mkdirSync(target);
    const inner = new Repository(join(folder, 'inner'));
    inner.commit({ config: '[core]\n\tfsmonitor = touch pwn\n', hooks: 'x', file: 'written through' });
    repository.git('fetch', '-q', inner.folder, 'main');
    const tree = inner.git('rev-parse', 'HEAD^{tree}');
    const link = execFileSync('git', ['hash-object', '-w', '--stdin'], {
      cwd: repository.folder,
      input: target,
      encoding: 'utf8',
    }).trim();
    const raw = Buffer.concat(
      entries.map(({ mode, path }) =>
        Buffer.concat([
          Buffer.from(`${mode.replace(/^0/, '')} ${path}\0`),
          Buffer.from(mode === '120000' ? link : tree, 'hex'),
        ]),
      ),
    );
    const made = execFileSync('git', ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], {
      cwd: repository.folder,
      input: raw,
      encoding: 'utf8',
    }).trim();
    const commit = repository.git('commit-tree', '-m', 'hostile', made);
    repository.git('update-ref', 'refs/heads/main', commit);
    await expect(checkOut(commit)).rejects.toEqual(refusal('bad_objects'));
    expect(existsSync(join(folder, 'workspace'))).toBe(false);
    expect(readdirSync(target)).toEqual([]);
  });

  it('is refused where its files are over the limit although the repository is small, before one of them is written', async () => {
    const commit = repository.commit({ zeros: Buffer.alloc(8 * 1024 ** 2) });
    const opened = mirrors({ repositoryBytesMax: 4 * 1024 ** 2 });
    await expect(checkOut(commit, opened)).rejects.toEqual(refusal('too_large'));
    expect(existsSync(join(folder, 'workspace'))).toBe(false);
  });

  it('is refused where a few objects stand for more files than a disk has', async () => {
    let object = EMPTY_BLOB;
    execFileSync('git', ['hash-object', '-w', '--stdin'], { cwd: repository.folder, input: '' });
    for (let depth = 0; depth < 9; depth += 1) {
      const [mode, type] = depth === 0 ? ['100644', 'blob'] : ['040000', 'tree'];
      const listing = Array.from({ length: 10 }, (_, index) => `${mode} ${type} ${object}\t${index}`).join('\n');
      object = execFileSync('git', ['mktree'], {
        cwd: repository.folder,
        input: `${listing}\n`,
        encoding: 'utf8',
      }).trim();
    }
    const commit = repository.git('commit-tree', '-m', 'a bomb', object);
    repository.git('update-ref', 'refs/heads/main', commit);
    await expect(checkOut(commit)).rejects.toEqual(refusal('too_large'));
  });

  it('does not come of a name that no file can have', async () => {
    const object = execFileSync('git', ['hash-object', '-w', '--stdin'], {
      cwd: repository.folder,
      input: '',
      encoding: 'utf8',
    }).trim();
    const commit = repository.commitEntries([{ mode: '100644', type: 'blob', object, path: 'x'.repeat(300) }]);
    await expect(checkOut(commit)).rejects.toEqual(refusal('bad_objects', 'cannot be written'));
    expect(existsSync(join(folder, 'workspace'))).toBe(false);
  });

  it.each(['HEAD^{tree}', 'HEAD:file'])("does not come of an id that is no commit's: %s", async (name) => {
    repository.commit({ file: 'content' });
    await expect(checkOut(repository.git('rev-parse', name))).rejects.toEqual(refusal('not_found'));
  });

  it('is never made over something', async () => {
    const commit = repository.commit({ file: '' });
    mkdirSync(join(folder, 'workspace'));
    writeFileSync(join(folder, 'workspace', 'mine'), 'mine');
    await expect(checkOut(commit)).rejects.toThrow('empty folder');
    expect(readdirSync(join(folder, 'workspace'))).toEqual(['mine']);
  });
});

describe('a server', () => {
  it.each([24, 3])(
    'that sends more than the limit is cut off while it sends, or refused where it was faster (%s MiB)',
    async (mebibytes) => {
      const commit = repository.commit({ noise: randomBytes(mebibytes * 1024 ** 2) });
      await expect(
        mirrors({ repositoryBytesMax: 2 * 1024 ** 2 }).fetch({ url: repository.url, commit }),
      ).rejects.toEqual(refusal('too_large'));
      expect(kept()).toEqual([]);
    },
  );

  it('that never answers takes half of the slots at most: another one is fetched from meanwhile', async () => {
    let asked = 0;
    const twice = Promise.withResolvers<void>();
    const server = await serve(() => {
      asked += 1;
      if (asked === 2) twice.resolve();
    });
    closing.push(server);
    const opened = mirrors({ concurrency: 4 });
    const leaving = new AbortController();
    const fetches = Array.from({ length: 6 }, (_, index) =>
      opened
        .fetch({ url: `${server.url}/a/${index}`, commit: 'a'.repeat(40), signal: leaving.signal })
        .catch((error: unknown) => error),
    );
    await twice.promise;
    const commit = repository.commit({ 'a.txt': 'a' });
    expect((await opened.fetch({ url: repository.url, commit })).commit).toBe(commit);
    expect(asked).toBe(2);
    leaving.abort(new Error('enough'));
    await Promise.all(fetches);
  });

  it('that never answers is given up at the deadline, and its git with it', async () => {
    const server = await serve(() => {});
    closing.push(server);
    const opened = mirrors({ fetchMsMax: 400 });
    await expect(opened.fetch({ url: `${server.url}/a/b`, commit: 'a'.repeat(40) })).rejects.toEqual(
      refusal('timeout'),
    );
    const running = readdirSync('/proc').filter(
      (pid) => /^\d+$/.test(pid) && commandLine(pid).includes(join(folder, 'mirrors')),
    );
    expect(running).toEqual([]);
    expect(kept()).toEqual([]);
  });

  it('that sends git elsewhere is not followed', async () => {
    const target = await serve((_request, response) => response.end('reached'));
    const server = await serve((request, response) =>
      response.writeHead(302, { location: `${target.url}${request.url}` }).end(),
    );
    closing.push(target, server);
    await expect(mirrors().fetch({ url: `${server.url}/a/b`, commit: 'a'.repeat(40) })).rejects.toEqual(
      refusal('unreachable', 'another address'),
    );
    expect(target.requests).toEqual([]);
  });

  it.each([
    ['nothing that git understands', (): Buffer => Buffer.from('<html>hello</html>')],
    ['a bomb', (): Buffer => gzipSync(Buffer.alloc(64 * 1024 ** 2))],
  ])('that answers %s is unreachable, and none of its words reach the error', async (_what, body) => {
    const bytes = body();
    const server = await serve((_request, response) => {
      response
        .writeHead(200, {
          'content-type': 'application/x-git-upload-pack-advertisement',
          ...(bytes[0] === 0x1f ? { 'content-encoding': 'gzip' } : {}),
        })
        .end(bytes);
    });
    closing.push(server);
    await expect(mirrors().fetch({ url: `${server.url}/a/b`, commit: 'a'.repeat(40) })).rejects.toMatchObject({
      message: expect.not.stringContaining('hello'),
    });
    expect(kept()).toEqual([]);
  });

  it('whose refs are commands is read as any other', async () => {
    const commit = repository.commit({ [PIPELINE]: 'fine' });
    // What file systems allow; git allows more.
    for (const name of ['$(touch${IFS}pwn)', '`touch${IFS}pwn`', 'a;touch${IFS}pwn', "a'b", 'a"b', '-x'])
      repository.git('update-ref', `refs/heads/${name}`, commit);
    repository.git('commit', '-q', '--allow-empty', '-m', 'later');
    const server = await smartServer(folder, { protocol: 0 });
    closing.push(server);
    repository.git('checkout', '-q', '--orphan', 'other');
    const fetched = await mirrors().fetch({ url: `${server.url}/repository/.git`, commit });
    expect((await fetched.readFile([PIPELINE], 100))?.text).toBe('fine');
    expect(existsSync(join(folder, 'pwn'))).toBe(false);
  });
});

/** What is left of mirrors. */
function kept(): string[] {
  return readdirSync(join(folder, 'mirrors')).filter(
    (name) => name.endsWith('.git') && lstatSync(join(folder, 'mirrors', name)).isDirectory(),
  );
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

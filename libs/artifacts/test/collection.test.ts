import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArtifactsFailed, collectFiles, type Collection, type CollectOptions, type KeptFile } from '../src/index.ts';
import { KEPT_FILES_MAX } from '../src/manifest.ts';

const IS_ROOT = process.getuid?.() === 0;
const STRANGER = { uid: 63_001, gid: 63_001 };

let root: string;
let folder: string;
const open: Collection[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-collect-'));
  folder = join(root, 'work');
  mkdirSync(folder);
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  rmSync(root, { recursive: true, force: true });
});

async function collect(patterns: readonly string[], options: Partial<CollectOptions> = {}): Promise<Collection> {
  const collection = await collectFiles({ folder, patterns, bytesMax: 100_000_000, ...options });
  open.push(collection);
  return collection;
}

function write(path: string, content = path): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), content);
}

const pathsOf = (collection: Collection): string[] => collection.listing.files.map(({ path }) => path);

describe('what a stage has left is collected', { timeout: 60_000 }, () => {
  it('patterns take files in and out, the last that fits deciding', async () => {
    for (const path of ['dist/a.js', 'dist/a.js.map', 'dist/deep/b.js', 'src/a.ts', '.hidden/x', '-rf']) write(path);
    expect(pathsOf(await collect(['dist/**', '!dist/**/*.map']))).toEqual(['dist/a.js', 'dist/deep/b.js']);
    expect(pathsOf(await collect(['*']))).toEqual(['-rf']);
    expect(pathsOf(await collect(['**']))).toEqual(
      ['-rf', '.hidden/x', 'dist/a.js', 'dist/a.js.map', 'dist/deep/b.js', 'src/a.ts'].toSorted(),
    );
  });

  it('each has its size, its hash and whether it is a program, and is read again as it was listed', async () => {
    write('a', 'x'.repeat(700_000));
    write('bin/tool', '#!/bin/sh\n');
    chmodSync(join(folder, 'bin/tool'), 0o755);
    const collection = await collect(['a', 'bin/*']);
    const sum = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(collection.listing.files).toEqual([
      { path: 'a', sizeBytes: 700_000, sha256: sum('x'.repeat(700_000)), executable: false },
      { path: 'bin/tool', sizeBytes: 10, sha256: sum('#!/bin/sh\n'), executable: true },
    ]);
    for (const file of collection.listing.files) {
      const bytes = Buffer.concat(await Array.fromAsync(collection.read(file)));
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256);
    }
  });

  it('is lent in pieces that are taken back, and what nobody reads to its end is not in the way of what is read next', async () => {
    write('a', 'x'.repeat(3_000_000));
    write('b', 'y'.repeat(2_000_000));
    const collection = await collect(['*']);
    const [a, b] = collection.listing.files;
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of collection.lend(a as KeptFile)) {
      pieces.push(piece);
      length += piece.length;
      expect(Buffer.from(piece).every((byte) => byte === 0x78)).toBe(true);
    }
    expect(length).toBe(3_000_000);
    expect(pieces.some((piece) => piece.length === 0)).toBe(true);
    for await (const _ of collection.lend(a as KeptFile)) break;
    for await (const _ of collection.read(a as KeptFile)) break;
    const hash = createHash('sha256');
    for await (const piece of collection.read(b as KeptFile)) hash.update(piece);
    expect(hash.digest('hex')).toBe(b?.sha256);
  });

  it('a link is taken as the file that it leads to, and not where it leaves, leads to a folder or nowhere', async () => {
    write('real/file', 'content');
    writeFileSync(join(root, 'secret'), 'of another');
    for (const [target, path] of [
      ['real/file', 'good'],
      ['../secret', 'leaves'],
      [join(root, 'secret'), 'absolute'],
      ['real', 'folder'],
      ['nowhere', 'dangling'],
      ['circle', 'circle'],
      ['real/../../secret', 'around'],
    ] as const)
      symlinkSync(target, join(folder, path));
    symlinkSync(root, join(folder, 'out'));
    write('deep/x');
    symlinkSync('../out/secret', join(folder, 'deep/through'));
    const collection = await collect(['*', 'deep/*', 'out/**', 'folder/**']);
    expect(pathsOf(collection)).toEqual(['deep/x', 'good']);
    expect(collection.listing.leftOut.map(({ path }) => path).toSorted()).toEqual(
      ['absolute', 'around', 'circle', 'dangling', 'deep/through', 'folder', 'leaves', 'out'].toSorted(),
    );
  });

  it('pipes and sockets are not taken, and do not hold it up', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    write('file');
    const collection = await collect(['*']);
    expect(pathsOf(collection)).toEqual(['file']);
    expect(collection.listing.leftOut).toEqual([{ path: 'pipe', why: 'it is no file' }]);
  });

  it('names that cannot stand in a list are left out', async () => {
    write('a\nb');
    write('c\\d');
    execFileSync('sh', ['-c', `printf x > "$(printf 'bad\\377')"`], { cwd: folder });
    const collection = await collect(['**']);
    expect(pathsOf(collection)).toEqual([]);
    expect(collection.listing.leftOutCount).toBe(3);
  });

  it('what patterns do not lead into is not looked at', async () => {
    write('dist/a');
    mkdirSync(join(folder, 'shut/dist'), { recursive: true });
    chmodSync(join(folder, 'shut'), 0);
    try {
      const collection = await collect(['dist/**', '*.txt', 'dist/*/x']);
      expect(pathsOf(collection)).toEqual(['dist/a']);
      expect(collection.listing.leftOutCount).toBe(0);
    } finally {
      chmodSync(join(folder, 'shut'), 0o700);
    }
  });

  it.runIf(IS_ROOT)('the files are read with the rights of the user alone', async () => {
    write('mine');
    write('roots');
    chmodSync(root, 0o755);
    chownSync(folder, STRANGER.uid, STRANGER.gid);
    chownSync(join(folder, 'mine'), STRANGER.uid, STRANGER.gid);
    chmodSync(join(folder, 'roots'), 0o600);
    const collection = await collect(['*'], { user: STRANGER });
    expect(pathsOf(collection)).toEqual(['mine']);
    expect(collection.listing.leftOut).toEqual([{ path: 'roots', why: 'it cannot be read' }]);
  });

  it('too many files, or too many bytes, are refused before a byte is handed out', async () => {
    for (let index = 0; index < 20; index += 1) write(`many/${index}`);
    await expect(collect(['many/*'], { filesMax: 19 })).rejects.toMatchObject({ reason: 'quota' });
    expect(pathsOf(await collect(['many/*'], { filesMax: 20 }))).toHaveLength(20);
    write('large', 'x'.repeat(1_000));
    await expect(collect(['large'], { bytesMax: 999 })).rejects.toMatchObject({ reason: 'quota' });
  });

  it('more files than any stage may keep are refused in a sentence, and none is handed out', async () => {
    mkdirSync(join(folder, 'many'));
    for (let index = 0; index <= KEPT_FILES_MAX; index += 1) writeFileSync(join(folder, 'many', String(index)), '');
    await expect(collect(['**'])).rejects.toMatchObject({
      reason: 'quota',
      message: `more than ${KEPT_FILES_MAX} files match; a stage may keep so many`,
    });
  });

  it('names that no pattern asks for do not count, and names that cannot be kept do not hide others', async () => {
    for (let index = 0; index < 30; index += 1) write(`many/${index}.txt`);
    for (let index = 0; index < 30; index += 1) write(`many/back\\slash-${index}.log`);
    write('many/z.log');
    write('many/inner/y.log');
    const { listing } = await collect(['many/**/*.log'], { filesMax: 2 });
    expect(listing.files.map(({ path }) => path)).toEqual(['many/inner/y.log', 'many/z.log']);
    expect(listing.leftOutCount).toBe(30);
  });

  it('a folder in the place of the working folder is looked at by itself: a link there is refused', async () => {
    symlinkSync('/etc', join(root, 'link'));
    await expect(collect(['**'], { folder: join(root, 'link') })).rejects.toThrow(ArtifactsFailed);
  });

  it('a pattern that names a folder is told', async () => {
    write('dist/a');
    const collection = await collect(['dist']);
    expect(pathsOf(collection)).toEqual([]);
    expect(collection.listing.folders).toEqual(['dist']);
  });

  it('the reading ends when it is called off', async () => {
    write('a');
    const signal = AbortSignal.abort(new Error('called off'));
    await expect(collect(['a'], { signal })).rejects.toThrow('called off');
  });
});

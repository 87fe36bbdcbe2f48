import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  closeSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArtifactsFailed, packCache, unpackCache, type PackedFiles } from '../src/index.ts';
import { BLOCK_BYTES, linkFault } from '../src/cache/archive.ts';

const IS_ROOT = process.getuid?.() === 0;
const STRANGER = { uid: 63_001, gid: 63_001 };

let root: string;
let from: { workspace: string; home: string };
let into: { workspace: string; home: string };
let archive: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-cache-'));
  const foldersOf = (name: string): { workspace: string; home: string } => {
    const home = join(root, name);
    const workspace = join(home, 'shared');
    mkdirSync(workspace, { recursive: true });
    return { workspace, home };
  };
  from = foldersOf('from');
  into = foldersOf('into');
  archive = join(root, 'archive');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, content = path): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
}

async function pack(paths: readonly string[], user?: typeof STRANGER): Promise<PackedFiles> {
  const parts: Buffer[] = [];
  const packed = await packCache({ ...from, paths, user }, (bytes) => void parts.push(bytes));
  writeFileSync(archive, Buffer.concat(parts));
  return packed;
}

async function unpack(
  paths: readonly string[],
  { replace = true, user }: { replace?: boolean; user?: typeof STRANGER } = {},
): Promise<{ readonly files: number }> {
  const file = openSync(archive, 'r');
  try {
    return await unpackCache({ ...into, paths, user }, file, replace);
  } finally {
    closeSync(file);
  }
}

type Record = readonly [head: unknown, content?: string | Uint8Array];

/** An archive as nobody's packer makes it. */
function forge(records: readonly Record[], end: unknown = { end: true, records: records.length }): void {
  const parts: Buffer[] = [];
  for (const [head, content = ''] of [...records, [end] as const]) {
    const text = Buffer.from(typeof head === 'string' ? head : JSON.stringify(head));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    parts.push(length, text, Buffer.from(content));
  }
  writeFileSync(archive, blockOf(zstdCompressSync(Buffer.concat(parts))));
}

function blockOf(packed: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(packed.length);
  return Buffer.concat([length, packed]);
}

const file = (path: string, content = 'x', root_ = 'workspace'): Record => [
  { root: root_, path, size: content.length, mode: 0o644, time: 0 },
  content,
];
const link = (path: string, target: string): Record => [{ root: 'workspace', path, link: target }];
const leftBehind = (): string[] => readdirSync(into.home).filter((name) => name !== 'shared');

describe('an archive of a cache', { timeout: 60_000 }, () => {
  it('holds files and links of both roots with permissions and times, and nothing else', async () => {
    write(join(from.workspace, 'modules/a/index.js'), 'a'.repeat(300_000));
    write(join(from.workspace, 'modules/a/empty'), '');
    write(join(from.workspace, 'modules/out/of'), 'not this');
    write(join(from.workspace, 'other'), 'nor this');
    write(join(from.home, '.npm/x'), 'home');
    chmodSync(join(from.workspace, 'modules/a/index.js'), 0o750);
    utimesSync(join(from.workspace, 'modules/a/index.js'), 1_000_000_000, 1_000_000_000);
    mkdirSync(join(from.workspace, 'modules/.bin'));
    symlinkSync('../a/index.js', join(from.workspace, 'modules/.bin/a'));
    symlinkSync('/etc/passwd', join(from.workspace, 'modules/passwd'));
    symlinkSync('../../../../x', join(from.workspace, 'modules/up'));
    spawnSync('mkfifo', [join(from.workspace, 'modules/pipe')]);
    const paths = ['modules', '!modules/out', '~/.npm'];
    const packed = await pack(paths);
    expect(packed).toMatchObject({ files: 4, bytes: 300_004, leftOutCount: 3 });
    expect(packed.leftOut.map(({ path }) => path).toSorted()).toEqual(['modules/passwd', 'modules/pipe', 'modules/up']);
    expect(await unpack(paths)).toMatchObject({ files: 4 });
    const made = join(into.workspace, 'modules/a/index.js');
    expect(readFileSync(made, 'utf8')).toBe('a'.repeat(300_000));
    expect(statSync(made)).toMatchObject({ mtimeMs: 1_000_000_000_000 });
    expect(statSync(made).mode & 0o777).toBe(0o750);
    expect(readlinkSync(join(into.workspace, 'modules/.bin/a'))).toBe('../a/index.js');
    expect(readFileSync(join(into.home, '.npm/x'), 'utf8')).toBe('home');
    expect(readdirSync(into.workspace)).toEqual(['modules']);
    expect(leftBehind()).toEqual(['.npm']);
  });

  it('may have a file larger than a block, and more files than one holds', async () => {
    const large = Buffer.alloc(BLOCK_BYTES * 2 + 17, 'abc');
    write(join(from.workspace, 'c/large'), '');
    writeFileSync(join(from.workspace, 'c/large'), large);
    for (let index = 0; index < 300; index += 1) write(join(from.workspace, `c/${index}`), 'y'.repeat(30_000));
    await pack(['c']);
    expect(await unpack(['c'])).toMatchObject({ files: 301 });
    expect(readFileSync(join(into.workspace, 'c/large')).equals(large)).toBe(true);
  });

  it('gives way to nothing that is there, or takes its place, and never goes through a link', async () => {
    write(join(from.workspace, 'm/a'), 'cached');
    write(join(from.workspace, 'm/deep/b'), 'cached');
    await pack(['m']);
    write(join(into.workspace, 'm/a'), 'mine');
    write(join(into.workspace, 'm/own'), 'mine');
    await unpack(['m'], { replace: false });
    expect(readFileSync(join(into.workspace, 'm/a'), 'utf8')).toBe('mine');
    expect(readFileSync(join(into.workspace, 'm/deep/b'), 'utf8')).toBe('cached');
    const outside = join(root, 'outside');
    mkdirSync(outside);
    rmSync(join(into.workspace, 'm/deep'), { recursive: true });
    symlinkSync(outside, join(into.workspace, 'm/deep'));
    await unpack(['m']);
    expect(readFileSync(join(into.workspace, 'm/a'), 'utf8')).toBe('cached');
    expect(readFileSync(join(into.workspace, 'm/own'), 'utf8')).toBe('mine');
    expect(readdirSync(outside)).toEqual([]);
    expect(lstatSync(join(into.workspace, 'm/deep')).isDirectory()).toBe(true);
  });

  it.runIf(IS_ROOT)('is made and laid out with the rights of the stage alone', async () => {
    write(join(from.workspace, 'm/open'), 'open');
    write(join(from.workspace, 'm/shut'), 'shut');
    chmodSync(join(from.workspace, 'm/shut'), 0o600);
    expect(await pack(['m'], STRANGER)).toMatchObject({ files: 1, leftOutCount: 1 });
    await expect(unpack(['m'], { user: STRANGER })).rejects.toThrow(ArtifactsFailed);
    for (const folder of [into.home, into.workspace]) chownSync(folder, STRANGER.uid, STRANGER.gid);
    await unpack(['m'], { user: STRANGER });
    expect(statSync(join(into.workspace, 'm/open'))).toMatchObject(STRANGER);
  });

  it.each<readonly [string, readonly Record[]]>([
    ['leads above the folder', [file('../evil')]],
    ['leads there on a detour', [file('m/../../evil')]],
    ['is absolute', [file('/tmp/evil')]],
    ['goes through a link of the archive', [link('m/l', '.'), file('m/l/evil')]],
    ['is there twice', [file('m/a'), file('m/a')]],
    ['is of no root', [file('m/a', 'x', 'runner')]],
    ['is a link to a place outside', [link('m/l', '../../evil')]],
    ['is a link that climbs behind a name', [link('m/l', 'a/../../x')]],
    ['is an absolute link', [link('m/l', '/etc/passwd')]],
    ['is longer than it says', [[{ root: 'workspace', path: 'm/a', size: 1, mode: 0o644, time: 0 }, 'xyz']]],
    ['is shorter than it says', [[{ root: 'workspace', path: 'm/a', size: 1e12, mode: 0o644, time: 0 }, 'x']]],
    ['has rights that no file has', [[{ root: 'workspace', path: 'm/a', size: 0, mode: 0o4755, time: 0 }]]],
    ['is no JSON', [['{']]],
  ])('one whose record %s is refused, and nothing of it is there', async (_name, records) => {
    forge(records);
    await expect(unpack(['**'])).rejects.toThrow(ArtifactsFailed);
    expect(readdirSync(into.workspace)).toEqual([]);
    expect(leftBehind()).toEqual([]);
    expect(existsSync(join(root, 'evil'))).toBe(false);
  });

  it('one that was cut off, is no zstd, or swells is refused', async () => {
    forge([file('m/a')], { end: true, records: 2 });
    await expect(unpack(['m'])).rejects.toThrow('records are missing');
    forge([file('m/a')]);
    writeFileSync(archive, readFileSync(archive).subarray(0, -3));
    await expect(unpack(['m'])).rejects.toThrow('cut off');
    writeFileSync(archive, blockOf(Buffer.from('no zstd at all')));
    await expect(unpack(['m'])).rejects.toThrow('cannot be unpacked');
    writeFileSync(archive, blockOf(zstdCompressSync(Buffer.alloc(64 * BLOCK_BYTES))));
    await expect(unpack(['m'])).rejects.toThrow('cannot be unpacked');
    expect(readdirSync(into.workspace)).toEqual([]);
  });

  it('what the stage does not name is not laid out, whatever the archive holds', async () => {
    forge([file('m/a'), file('.git/hooks/post-checkout'), file('.profile', 'evil', 'home')]);
    expect(await unpack(['m'])).toMatchObject({ files: 1 });
    expect(readdirSync(into.workspace)).toEqual(['m']);
    expect(leftBehind()).toEqual([]);
  });

  it('a link stays within its root: what climbs does so at its beginning, and no further than the root', () => {
    for (const [path, target] of [
      ['a/b', '../c'],
      ['a/b', 'c/d'],
      ['a/.bin/x', '../../packages/x'],
    ] as const)
      expect(linkFault(path, target)).toBeUndefined();
    for (const [path, target] of [
      ['a/b', '../../c'],
      ['a', '..'],
      ['a/b', 'c/../d'],
      ['a', '/x'],
      ['a', ''],
      ['a', 'x\0y'],
    ] as const)
      expect(linkFault(path, target)).toMatch(/link/);
  });

  it('the signal ends it', async () => {
    write(join(from.workspace, 'm/a'));
    const signal = AbortSignal.abort(new Error('told to stop'));
    await expect(packCache({ ...from, paths: ['m'], signal }, () => {})).rejects.toThrow('told to stop');
  });
});

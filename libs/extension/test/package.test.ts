import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inspectPackage, PACKAGE_LIMITS, packFolder, PackageRefused, unpackPackage } from '../src/index.ts';
import { archiveOf, MANIFEST, streamOf, tarOf, type ArchiveEntry } from './archives.ts';

let scratch = '';
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'penstock-extension-'));
});
afterEach(() => {
  execFileSync('chmod', ['-R', 'u+w', scratch]);
  rmSync(scratch, { recursive: true, force: true });
});

function folderWith(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(scratch, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const FILES = {
  'extension.yaml': MANIFEST,
  'run.sh': '#!/bin/sh\necho hi\n',
  'README.md': '# Sample\n',
  'CHANGELOG.md': '1.2.3: first\n',
  'lib/deep/a.txt': 'a',
  'lib/z.txt': 'z',
};

describe('packing', () => {
  it('the same files make the same bytes, whatever their times, their order and their rights', async () => {
    const one = folderWith('one', FILES);
    const two = folderWith('two', Object.fromEntries(Object.entries(FILES).toReversed()));
    for (const folder of [one, two]) chmodSync(join(folder, 'run.sh'), folder === one ? 0o755 : 0o700);
    utimesSync(join(two, 'run.sh'), 1, 1);
    chmodSync(join(two, 'lib/z.txt'), 0o600);
    mkdirSync(join(two, '.git'));
    mkdirSync(join(two, 'empty'));
    const [first, second] = [await packFolder(one), await packFolder(two)];
    expect(Buffer.from(second.bytes).equals(first.bytes)).toBe(true);
    expect(first.hash).toBe(createHash('sha256').update(first.bytes).digest('hex'));
    // The bytes depend on no compressor, so this is what every machine makes of these files.
    expect(first.hash).toBe('88b81a8b1f9d4c495148e8ecdf0902aa7e03f174a9d36eca46a7048775488492');
  });

  it('any tar reads it, and what tar makes is read', async () => {
    const { bytes } = await packFolder(folderWith('one', FILES));
    writeFileSync(join(scratch, 'one.tgz'), bytes);
    expect(
      execFileSync('tar', ['tzf', join(scratch, 'one.tgz')], { encoding: 'utf8' })
        .trim()
        .split('\n'),
    ).toEqual(Object.keys(FILES).toSorted());
    const made = execFileSync('tar', ['czf', '-', '-C', join(scratch, 'one'), '.'], { maxBuffer: 1e7 });
    expect(await inspectPackage(streamOf(made))).toMatchObject({
      readme: '# Sample\n',
      changelog: '1.2.3: first\n',
      manifestText: MANIFEST,
      manifest: { id: 'build/sample', version: '1.2.3' },
    });
  });

  it('refuses links and folders without a manifest', async () => {
    const folder = folderWith('one', FILES);
    symlinkSync('/etc/passwd', join(folder, 'secret'));
    await expect(packFolder(folder)).rejects.toThrow("the package holds a link: 'secret'");
    await expect(packFolder(folderWith('two', { a: 'b' }))).rejects.toThrow(
      'the package has no extension.yaml at its root',
    );
  });
});

describe('unpacking', () => {
  it('gives the files as they were, read-only, programs as programs', async () => {
    const folder = folderWith('one', FILES);
    chmodSync(join(folder, 'run.sh'), 0o755);
    const { bytes, hash } = await packFolder(folder);
    const target = join(scratch, 'unpacked');
    expect(await unpackPackage(streamOf(bytes, 1), target, { hash })).toMatchObject({ hash, files: 6 });
    for (const [path, text] of Object.entries(FILES)) expect(readFileSync(join(target, path), 'utf8')).toBe(text);
    expect([
      statSync(join(target, 'run.sh')).mode & 0o777,
      statSync(join(target, 'README.md')).mode & 0o777,
      statSync(join(target, 'lib')).mode & 0o777,
    ]).toEqual([0o555, 0o444, 0o555]);
  });

  it('leaves nothing of a package with another hash, nor of one that is cut off', async () => {
    const { bytes } = await packFolder(folderWith('one', FILES));
    await expect(unpackPackage(streamOf(bytes), join(scratch, 'out', 'x'), { hash: 'f'.repeat(64) })).rejects.toThrow(
      'the package has the SHA-256',
    );
    await expect(unpackPackage(streamOf(bytes.subarray(0, 2_000)), join(scratch, 'out', 'x'))).rejects.toThrow(
      'the package is',
    );
    expect(readdirSync(join(scratch, 'out'))).toEqual([]);
  });

  it('tells the error of the stream that the bytes come from', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield (await packFolder(folderWith('one', FILES))).bytes.subarray(0, 100);
      throw new Error('the network is away');
    }
    await expect(unpackPackage(broken(), join(scratch, 'x'))).rejects.toThrow('the network is away');
  });
});

/** What only those find who read the texts. */
const ABOUT_TEXTS: readonly string[] = ['manifest', 'bytes'];
const BOMB_BYTES = 30 * 1024 * 1024;

describe('hostile packages are refused, each by its own message, and nothing is written', () => {
  const raw = async (entries: readonly ArchiveEntry[]): Promise<Buffer> => await archiveOf(entries);
  const cases: readonly (readonly [name: string, fault: string, message: string, make: () => Promise<Buffer>])[] = [
    [
      'a path that leaves',
      'traversal',
      "a path that leaves its folder: '../../etc/cron.d/x'",
      () => raw([{ name: '../../etc/cron.d/x', content: 'x' }]),
    ],
    [
      'a path that leaves in its middle',
      'traversal',
      "a path that leaves its folder: 'a/../../x'",
      () => raw([{ name: 'a/../../x', content: 'x' }]),
    ],
    [
      'a folder that is the one above',
      'traversal',
      "a path that leaves its folder: '..'",
      () => raw([{ name: '..', type: 'directory' }]),
    ],
    [
      'an absolute path',
      'absolute',
      "an absolute path: '/etc/passwd'",
      () => raw([{ name: '/etc/passwd', content: 'x' }]),
    ],
    ['a path with a drive', 'absolute', "an absolute path: 'C:/x'", () => raw([{ name: 'C:/x', content: 'x' }])],
    ['a backslash', 'name', 'a name with a backslash', () => raw([{ name: 'a\\..\\x', content: 'x' }])],
    ['an empty part', 'name', "a path with an empty part: 'a//b'", () => raw([{ name: 'a//b', content: 'x' }])],
    [
      'a part that is a dot',
      'name',
      "a path with an empty part: 'a/./b'",
      () => raw([{ name: 'a/./b', content: 'x' }]),
    ],
    [
      'a line break in a name',
      'name',
      "characters that cannot be seen, or that are no text: 'a\\u{a}b'",
      () => raw([{ name: 'a\nb', content: 'x' }]),
    ],
    [
      'a name that turns its direction',
      'name',
      'characters that cannot be seen',
      () => raw([{ name: 'a\u202egpj.sh', content: 'x' }]),
    ],
    // Both names have the same sum, so the header stays valid.
    [
      'a name that is not UTF-8',
      'name',
      'characters that cannot be seen, or that are no text',
      async () =>
        gzipSync(
          Buffer.from(
            (
              await tarOf([
                { name: 'extension.yaml', content: MANIFEST },
                { name: 'QQQQQQQQ', content: 'x' },
              ])
            )
              .toString('latin1')
              .replace('QQQQQQQQ', '\xff8888889'),
            'latin1',
          ),
        ),
    ],
    ['a symbolic link', 'link', "a link: 'x'", () => raw([{ name: 'x', type: 'symlink', linkname: '/etc' }])],
    ['a hard link', 'link', "a link: 'x'", () => raw([{ name: 'x', type: 'link', linkname: 'extension.yaml' }])],
    [
      'a file through a link',
      'link',
      "a link: 'x'",
      () =>
        raw([
          { name: 'x', type: 'symlink', linkname: '/tmp' },
          { name: 'x/y', content: 'z' },
        ]),
    ],
    [
      'a character device',
      'device',
      "a device or a pipe: 'tty'",
      () => raw([{ name: 'tty', type: 'character-device', devmajor: 5, devminor: 0 }]),
    ],
    [
      'a block device',
      'device',
      "a device or a pipe: 'sda'",
      () => raw([{ name: 'sda', type: 'block-device', devmajor: 8, devminor: 0 }]),
    ],
    ['a pipe', 'device', "a device or a pipe: 'p'", () => raw([{ name: 'p', type: 'fifo' }])],
    [
      'setuid',
      'special_bits',
      "setuid, setgid or sticky bit: 'su'",
      () => raw([{ name: 'su', mode: 0o4755, content: 'x' }]),
    ],
    [
      'setgid',
      'special_bits',
      "setuid, setgid or sticky bit: 'sg'",
      () => raw([{ name: 'sg', mode: 0o2755, content: 'x' }]),
    ],
    [
      'the same file twice',
      'duplicate',
      "'a' twice",
      () =>
        raw([
          { name: 'a', content: '1' },
          { name: 'a', content: '2' },
        ]),
    ],
    [
      'the manifest twice',
      'duplicate',
      "'extension.yaml' twice",
      () =>
        raw([
          { name: 'extension.yaml', content: MANIFEST },
          { name: './extension.yaml', content: 'x' },
        ]),
    ],
    [
      'a file that is a folder',
      'duplicate',
      "'a' as a file and as a folder",
      () =>
        raw([
          { name: 'a', content: '1' },
          { name: 'a/b', content: '2' },
        ]),
    ],
    [
      'a folder that is a file',
      'duplicate',
      "'a' as a file and as a folder",
      () =>
        raw([
          { name: 'a/b', content: '1' },
          { name: 'a', content: '2' },
        ]),
    ],
    [
      'names that differ in case',
      'look_alike',
      "differ only in case or in look-alike characters: 'run.sh' and 'RUN.sh'",
      () =>
        raw([
          { name: 'run.sh', content: '1' },
          { name: 'RUN.sh', content: '2' },
        ]),
    ],
    [
      'names that differ in their form',
      'look_alike',
      "'file.sh' and 'ﬁle.sh'",
      () =>
        raw([
          { name: 'file.sh', content: '1' },
          { name: 'ﬁle.sh', content: '2' },
        ]),
    ],
    [
      'a name in a form that looks like another',
      'look_alike',
      'can be written in another way',
      () => raw([{ name: 'e\u0301.sh', content: '1' }]),
    ],
    [
      'folders 10,000 deep',
      'depth',
      'folders more than 32 levels deep',
      () => raw([{ name: `${'d/'.repeat(10_000)}f`, content: 'x', pax: { path: `${'d/'.repeat(10_000)}f` } }]),
    ],
    [
      'folders 33 deep',
      'depth',
      'folders more than 32 levels deep',
      () => raw([{ name: `${'d/'.repeat(32)}f`, content: 'x' }]),
    ],
    [
      'a name of 300 bytes',
      'path_length',
      'a name of more than 255 bytes',
      () => raw([{ name: `a/${'n'.repeat(300)}`, content: 'x', pax: { path: `a/${'n'.repeat(300)}` } }]),
    ],
    [
      'a path of 2,000 bytes',
      'path_length',
      'a path of more than 1024 bytes',
      () =>
        raw([
          {
            name: Array.from({ length: 10 }, () => 'n'.repeat(200)).join('/'),
            content: 'x',
            pax: { path: Array.from({ length: 10 }, () => 'n'.repeat(200)).join('/') },
          },
        ]),
    ],
    [
      '10,001 entries',
      'files',
      'more than 10,000 entries',
      () => raw(Array.from({ length: 10_001 }, (_, index) => ({ name: `f${index}`, content: '' }))),
    ],
    [
      'a bomb by its ratio',
      'ratio',
      `more than ${PACKAGE_LIMITS.ratioMax} times its size`,
      () => raw([{ name: 'zeros', content: Buffer.alloc(BOMB_BYTES) }]),
    ],
    [
      'a bomb in a long header',
      'format',
      'not a tar.gz, or is damaged',
      () => raw([{ name: 'x', content: 'x', pax: { comment: 'c'.repeat(5 * 1024 * 1024) } }]),
    ],
    ['no gzip', 'format', 'not a tar.gz, or is damaged', async () => Buffer.from('PK\u0003\u0004 this is a zip')],
    ['nothing', 'format', 'the package is', async () => Buffer.alloc(0)],
    ['gzip of no tar', 'format', 'not a tar.gz, or is damaged', async () => gzipSync(Buffer.alloc(2_048, 'x'))],
    [
      'damaged bytes',
      'format',
      'the package is',
      async () => {
        const bytes = await raw([
          { name: 'a', content: Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7_919) % 251)) },
        ]);
        bytes.fill(0x55, 200, 400);
        return bytes;
      },
    ],
    [
      'no manifest',
      'manifest',
      'no extension.yaml at its root',
      async () => gzipSync(await tarOf([{ name: 'a/extension.yaml', content: MANIFEST }])),
    ],
    [
      'a manifest that is refused',
      'manifest',
      "line 4, column 1: unknown key 'rum' in the manifest (did you mean 'run'?)",
      () => raw([{ name: 'extension.yaml', content: MANIFEST.replace('run:', 'rum:') }]),
    ],
    [
      'a manifest of a megabyte',
      'bytes',
      "'extension.yaml' of the package is larger than 64 KiB",
      () => raw([{ name: 'extension.yaml', content: `#${'x'.repeat(1_000_000)}\n`.replaceAll('xxxxxxx', 'abcdefg') }]),
    ],
    [
      'a manifest that is a link',
      'link',
      "a link: 'extension.yaml'",
      () => raw([{ name: 'extension.yaml', type: 'symlink', linkname: '/etc/passwd' }]),
    ],
    [
      'a manifest that is a folder',
      'manifest',
      'no extension.yaml at its root',
      () => raw([{ name: 'extension.yaml', type: 'directory' }]),
    ],
  ];

  it.each(cases)('%s is refused', async (_name, fault, message, make) => {
    const bytes = await make();
    const refusal: unknown = await inspectPackage(streamOf(bytes)).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(PackageRefused);
    expect(refusal).toMatchObject({ fault, message: expect.stringContaining(message) as unknown });
  });

  it.each(cases.filter(([, fault]) => !ABOUT_TEXTS.includes(fault)))(
    '%s: nothing is written',
    async (_name, fault, _message, make) => {
      await expect(unpackPackage(streamOf(await make()), join(scratch, 'out', 'x'))).rejects.toMatchObject({ fault });
      expect(readdirSync(join(scratch, 'out'))).toEqual([]);
      expect(readdirSync(scratch)).toEqual(['out']);
    },
  );

  it('the bytes themselves are bounded', async () => {
    const noise = randomBytes(1024 * 1024);
    const header = (await tarOf([{ name: 'big', content: 'x' }])).subarray(0, 512);
    async function* tooLarge(): AsyncGenerator<Uint8Array> {
      yield gzipSync(sized(header, 190 * 1024 * 1024), { level: 0 });
      const member = gzipSync(noise, { level: 0 });
      for (let sent = 0; sent < 2 * PACKAGE_LIMITS.bytesMax; sent += member.length) yield member;
      throw new Error('all of it was read');
    }
    await expect(inspectPackage(tooLarge())).rejects.toMatchObject({
      fault: 'bytes',
      message: 'the package is larger than 50 MiB',
    });
  });
});

/** The header of a file with another size. */
function sized(header: Buffer, size: number): Buffer {
  const copy = Buffer.from(header);
  copy.write(`${size.toString(8).padStart(11, '0')} `, 124, 'latin1');
  copy.write('        ', 148, 'latin1');
  const sum = copy.reduce((total, byte) => total + byte, 0);
  copy.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return copy;
}

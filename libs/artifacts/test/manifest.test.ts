import { describe, expect, it } from 'vitest';
import { ArtifactsFailed, decodeManifest, encodeManifest, pathFault, type KeptFile } from '../src/index.ts';

const SHA = 'a'.repeat(64);
const file = (path: string): KeptFile => ({ path, sizeBytes: 1, sha256: SHA, executable: false });
const written = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('the list of kept files', () => {
  it('is read as it was written, and the same files make the same bytes', () => {
    const files = [file('b'), file('a/c'), file('a/b')];
    expect(decodeManifest(encodeManifest(files))).toEqual([file('a/b'), file('a/c'), file('b')]);
    expect(encodeManifest(files.toReversed())).toEqual(encodeManifest(files));
  });

  it.each([
    '../../x',
    '/etc/passwd',
    'a/../b',
    './a',
    'a//b',
    'a/',
    '',
    'a\0b',
    'a\nb',
    'a\\b',
    `${'x'.repeat(256)}`,
    'x/'.repeat(600) + 'x',
  ])('the path %j is refused', (path) => {
    expect(pathFault(path)).toBeDefined();
    expect(() => decodeManifest(written({ version: 1, files: [file(path)] }))).toThrow(ArtifactsFailed);
  });

  it.each(['-rf', '.env', 'a b', 'ä', '$(touch x)', '__proto__', 'a:b'])(
    'the path %j is a name like any other',
    (path) => {
      expect(pathFault(path)).toBeUndefined();
      expect(decodeManifest(encodeManifest([file(path)]))).toEqual([file(path)]);
    },
  );

  // With each of their folders looked for they took five seconds, in which a gateway answered nobody else.
  it('may have as many and as long paths as there is room for, all of them of short names', () => {
    const names = '/a'.repeat(500);
    const files = Array.from({ length: 7_000 }, (_, index) => file(`${String(index).padStart(5, '0')}${names}`));
    const bytes = encodeManifest(files);
    for (let time = 0; time < 15; time += 1) expect(decodeManifest(bytes)).toHaveLength(files.length);
  });

  it.each([
    ['no JSON', Buffer.from('{')],
    ['another form', written({ version: 2, files: [] })],
    ['null', written(null)],
    ['a path twice', written({ version: 1, files: [file('a'), file('a')] })],
    ['a file that is a folder', written({ version: 1, files: [file('a'), file('a/b')] })],
    [
      'a file that is a folder, with names between them',
      written({ version: 1, files: ['a-b', 'a', 'a.c/d', 'a/b/c', 'ab'].map(file) }),
    ],
    ['a size below nothing', written({ version: 1, files: [{ ...file('a'), sizeBytes: -1 }] })],
    ['a size that is none', written({ version: 1, files: [{ ...file('a'), sizeBytes: '1' }] })],
    ['a hash that leads elsewhere', written({ version: 1, files: [{ ...file('a'), sha256: '../x' }] })],
    ['too many', written({ version: 1, files: Array.from({ length: 10_001 }, (_, index) => file(`f${index}`)) })],
  ])('%s is refused', (_name, bytes) => {
    expect(() => decodeManifest(bytes)).toThrow(ArtifactsFailed);
  });
});

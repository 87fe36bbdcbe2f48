import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArtifactsFailed, unpackFiles, type KeptFile } from '../src/index.ts';

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-unpack-'));
  folder = join(root, 'work');
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true }));

const file = (path: string, content: string, executable = false): KeptFile => ({
  path,
  sizeBytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
  executable,
});
const giving = (content: string) =>
  async function* (): AsyncGenerator<Uint8Array, void> {
    yield Buffer.from(content);
  };

describe('kept files are laid out', () => {
  it('they have their content and whether they are programs, in the place of what was there', async () => {
    writeFileSync(join(folder, 'a'), 'before');
    await unpackFiles(folder, [file('a', 'new'), file('deep/er/tool', 'new', true)], giving('new'));
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new');
    expect(statSync(join(folder, 'deep/er/tool')).mode & 0o777).toBe(0o755);
  });

  it('nothing is written through a link: neither in the place of a file, nor on the way to it', async () => {
    mkdirSync(join(root, 'outside'));
    writeFileSync(join(root, 'outside/f'), 'untouched');
    symlinkSync('../outside/f', join(folder, 'f'));
    symlinkSync('../outside', join(folder, 'dir'));
    await unpackFiles(folder, [file('f', 'x')], giving('x'));
    expect(readFileSync(join(folder, 'f'), 'utf8')).toBe('x');
    await expect(unpackFiles(folder, [file('dir/f', 'x')], giving('x'))).rejects.toThrow(ArtifactsFailed);
    expect(readFileSync(join(root, 'outside/f'), 'utf8')).toBe('untouched');
  });

  it.each(['../x', '/x', 'a/../../x', '', '.'])('the path %j is refused', async (path) => {
    await expect(unpackFiles(folder, [file(path, 'x')], giving('x'))).rejects.toThrow(ArtifactsFailed);
    expect(existsSync(join(root, 'x'))).toBe(false);
  });

  it('no more is written than the list says, and nothing but what its hash says', async () => {
    async function* endless(): AsyncGenerator<Uint8Array, void> {
      for (;;) yield Buffer.alloc(1_000);
    }
    await expect(unpackFiles(folder, [file('bomb', 'small')], endless)).rejects.toThrow('damaged');
    expect(statSync(join(folder, 'bomb')).size).toBeLessThan(2_000);
    await expect(unpackFiles(folder, [file('other', 'abc')], giving('abd'))).rejects.toThrow('damaged');
    await expect(unpackFiles(folder, [file('short', 'abc')], giving('ab'))).rejects.toThrow('damaged');
  });

  it('a folder in the place of a file is refused', async () => {
    mkdirSync(join(folder, 'a'));
    await expect(unpackFiles(folder, [file('a', 'x')], giving('x'))).rejects.toThrow('a folder is in its place');
  });
});

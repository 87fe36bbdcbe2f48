import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder, makeFolderSync } from '../src/index.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-folders-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('a folder', () => {
  it('is made with those above it, also by several at once, and for its user alone', async () => {
    const wanted = join(folder, 'a', 'b', 'c');
    await Promise.all([makeFolder(wanted), makeFolder(wanted), makeFolder(join(folder, 'a', 'b'))]);
    await makeFolder(wanted);
    expect((await stat(wanted)).mode & 0o777).toBe(0o700);
    const atOnce = join(folder, 'd', 'e');
    makeFolderSync(atOnce);
    makeFolderSync(atOnce);
    expect((await stat(atOnce)).mode & 0o777).toBe(0o700);
  });

  it('that cannot be made is told, where a file stands in its place too', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(makeFolder(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
    await expect(makeFolder(join(folder, 'file', 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    expect(() => makeFolderSync(join(folder, 'file'))).toThrow('EEXIST');
  });

  it.runIf(process.platform === 'linux')('that no file system makes is told at once', async () => {
    await expect(makeFolder('/proc/penstock/cache')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(() => makeFolderSync('/proc/penstock/cache')).toThrow('ENOENT');
  });
});

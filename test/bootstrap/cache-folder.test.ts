/** Where the entry scripts keep things between starts. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const { firstWritable } = (await import(
  fileURLToPath(new URL('../../bootstrap/cache-folder.js', import.meta.url))
)) as { firstWritable: (folders: readonly string[]) => string | undefined };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the first cache folder that can be written', () => {
  it('is made, with those above it', () => {
    const wanted = join(folder, 'a/b/c');
    expect(firstWritable([wanted])).toBe(wanted);
    expect(existsSync(wanted)).toBe(true);
  });

  it.each(['/proc/none/penstock', '/proc/self/none'])('is not %s, where no folder can be made', (none) => {
    expect(firstWritable([none, folder])).toBe(folder);
    expect(firstWritable([none])).toBeUndefined();
  });

  it('is none below a file', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(firstWritable([join(folder, 'file/below'), join(folder, 'file'), folder])).toBe(folder);
  });
});

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spreadFolders } from '../src/workspace/spread-folders.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-spread-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the folder in which workspaces are made', () => {
  it('is the top of trees that have nothing to do with each other, on ext4 that can be told', async () => {
    const isTold = await spreadFolders(folder);
    expect(isTold).toBe(statfsSync(folder).type === 0xef53 && canTell());
    expect(isTop(folder)).toBe(isTold);
  });

  it('serves as it is where nothing can be told', async () => {
    expect(await spreadFolders(join(folder, 'not-there'))).toBe(false);
    expect(statfsSync('/proc').type).not.toBe(0xef53);
    expect(await spreadFolders('/proc')).toBe(false);
  });
});

function isTop(path: string): boolean {
  try {
    const [flags = ''] = execFileSync('lsattr', ['-d', path], { encoding: 'utf8', stdio: 'pipe' }).split(' ');
    return flags.includes('T');
  } catch {
    return false;
  }
}

function canTell(): boolean {
  const other = mkdtempSync(join(tmpdir(), 'penstock-spread-'));
  try {
    execFileSync('chattr', ['+T', other], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(other, { recursive: true });
  }
}

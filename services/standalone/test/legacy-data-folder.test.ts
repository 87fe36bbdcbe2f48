import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataFolder } from '../src/data-lock.ts';
import { adoptLegacyDataFolder } from '../src/legacy-data-folder.ts';

let home: string;
let cwd: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-legacy-'));
  cwd = join(home, 'checkout');
  folder = join(home, 'share', 'penstock');
  mkdirSync(cwd);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function writeOldFolder(): string {
  const old = join(cwd, '.penstock');
  mkdirSync(old);
  writeFileSync(join(old, 'store.sqlite'), 'the runs');
  return old;
}

describe('a data folder of an earlier version', () => {
  it('moves to the default place at the first start, and one line says so', () => {
    const old = writeOldFolder();
    const chosen = adoptLegacyDataFolder(cwd, folder, cwd);
    expect(chosen.path).toBe(folder);
    expect(chosen.note).toBe(`the data folder has moved from ${old} to ${folder}`);
    expect(readFileSync(join(folder, 'store.sqlite'), 'utf8')).toBe('the runs');
    expect(existsSync(old)).toBe(false);
    expect(adoptLegacyDataFolder(cwd, folder, cwd)).toEqual({ path: folder, note: null });
  });

  it('stays where it is when the default folder holds a server of its own already', () => {
    const old = writeOldFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'store.sqlite'), 'newer runs');
    expect(adoptLegacyDataFolder(cwd, folder, cwd).note).toContain(`the older data folder ${old} is not used any more`);
    expect(readFileSync(join(old, 'store.sqlite'), 'utf8')).toBe('the runs');
  });

  it('is never taken from a server that is using it', () => {
    const old = writeOldFolder();
    const held = lockDataFolder(old);
    expect(() => adoptLegacyDataFolder(cwd, folder, cwd)).toThrow('another penstock serve');
    held.release();
  });

  it('is used where it is when it cannot be moved', () => {
    const old = writeOldFolder();
    writeFileSync(join(home, 'share'), 'a file where a folder is to be');
    const chosen = adoptLegacyDataFolder(cwd, folder, cwd);
    expect(chosen.path).toBe(old);
    expect(chosen.note).toContain(`mv ${old} ${folder}`);
  });
});

it('one that may have come with the files of somebody else is named, and not used', () => {
  const old = writeOldFolder();
  const chosen = adoptLegacyDataFolder(cwd, folder);
  expect(chosen.path).toBe(folder);
  // The folder that is used instead stands by then: what is moved there would be a folder in it, and read by nobody.
  expect(chosen.note).toContain(`if it is this server's, stop the server and start it with SERVICE_DATA_DIR=${old}`);
  expect(readFileSync(join(old, 'store.sqlite'), 'utf8')).toBe('the runs');
});

it('a folder called .penstock that no server made is left alone', () => {
  mkdirSync(join(cwd, '.penstock'));
  expect(adoptLegacyDataFolder(cwd, folder, cwd)).toEqual({ path: folder, note: null });
  expect(existsSync(join(cwd, '.penstock'))).toBe(true);
});

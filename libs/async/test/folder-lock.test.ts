import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { lockFolder } from '../src/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-test-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const inUse = (holder: string): Error => new Error(`in use${holder}`);

describe('the lock on a folder', () => {
  it('is one process’s, says whose, and is let go', () => {
    const lock = lockFolder(folder, inUse);
    const program = `import { lockFolder } from ${JSON.stringify(join(import.meta.dirname, '../src/index.ts'))};
      try { lockFolder(${JSON.stringify(folder)}, (holder) => new Error('in use' + holder)); console.log('got it'); } catch (error) { console.log(error.message); }`;
    const another = (): string =>
      execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }).trim();
    expect(another()).toBe(`in use (process ${process.pid})`);
    // What was asked for beside it has left nothing.
    expect(readdirSync(folder).toSorted()).toEqual(['lock', 'pid']);
    lock.release();
    lock.release();
    expect(another()).toBe('got it');
  });

  it.each([
    ['takes none', 5, 'database is locked'],
    ['fails at each', 3850, 'disk I/O error'],
  ])('is refused with a remedy where the file system %s, and not taken for another’s', (_what, errcode, message) => {
    // As SQLite does where the system says ENOLCK, or EOPNOTSUPP.
    vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(() => {
      throw Object.assign(new Error(message), { errcode });
    });
    expect(() => lockFolder(folder, inUse)).toThrow(
      `${folder} lies on a file system without file locks, as a network disk may be, where nothing would keep another process from it: ` +
        'name a folder on a disk of this machine (SERVICE_DATA_DIR, --data-dir)',
    );
    expect(readdirSync(folder)).toEqual(['lock']);
  });
});

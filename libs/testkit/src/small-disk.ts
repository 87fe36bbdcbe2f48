/** A disk that tests can fill: a small file system in memory, where this process may mount one. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class SmallDisk {
  readonly folder: string;

  constructor(bytes: number) {
    this.folder = mkdtempSync(join(tmpdir(), 'penstock-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'penstock-test', this.folder], { stdio: 'ignore' });
  }

  /** Leaves no byte free but what `leave` says. */
  fill(leave = 0): void {
    const fd = openSync(join(this.folder, 'filler'), 'a');
    const block = Buffer.alloc(4_096);
    try {
      for (;;) writeSync(fd, block);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(fd);
    }
    if (leave > 0) execFileSync('truncate', ['-s', `-${leave}`, join(this.folder, 'filler')]);
  }

  empty(): void {
    rmSync(join(this.folder, 'filler'), { force: true });
  }

  remove(): void {
    execFileSync('umount', ['-l', this.folder], { stdio: 'ignore' });
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Says so in the summary where it is not: then `what` has not run. */
export function canMount(what: string): boolean {
  try {
    if (!existsSync('/proc/self/mounts')) throw new Error('no mounts here');
    new SmallDisk(64 * 1024).remove();
    return true;
  } catch {
    const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
    if (notRunFile !== undefined)
      appendFileSync(notRunFile, `${what}: no file system can be mounted here (it needs root)\n`);
    return false;
  }
}

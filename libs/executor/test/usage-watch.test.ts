import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { recentTree, UsageWatch } from '../src/limits/usage-watch.ts';
import { descendantsOf } from '../src/system/proc.ts';

const MIB = 1024 ** 2;

describe('the disk of a stage that is watched', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync('/var/tmp/penstock-watch-');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('is measured also where others free as much as the stage takes', async () => {
    const folder = join(root, 'stage');
    const other = join(root, 'other');
    mkdirSync(folder);
    writeFileSync(other, Buffer.alloc(60 * MIB, 1));
    const { promise, resolve } = Promise.withResolvers<string>();
    const limits = { memoryBytes: MIB, diskBytes: 20 * MIB, inodes: 1_000, processes: 10, openFiles: 100 };
    const watch = new UsageWatch({
      folders: [folder],
      helperPid: undefined,
      limits,
      onExceeded: (what, remark) => resolve(`${what}: ${remark}`),
    });
    rmSync(other);
    writeFileSync(join(folder, 'file'), Buffer.alloc(40 * MIB, 1));
    expect(await promise).toMatch(/^disk: the stage takes \d+ bytes of the disk; 20971520 are allowed$/);
    watch.close();
  });

  it('is measured for as long as that takes, and no longer than the stage runs', async () => {
    const mark = join(root, 'pid');
    const limits = { memoryBytes: MIB, diskBytes: 0, inodes: 0, processes: 10, openFiles: 100 };
    const watch = new UsageWatch({
      folders: [root],
      measuring: ['sh', '-c', `echo $$ >${mark}.new; mv ${mark}.new ${mark}; exec sleep 1000`],
      helperPid: undefined,
      limits,
      onExceeded: () => {},
    });
    await expect.poll(() => existsSync(mark), { timeout: 20_000 }).toBe(true);
    const pid = Number(readFileSync(mark, 'utf8'));
    const isThere = (): boolean => descendantsOf(process.pid).some((each) => each.pid === pid);
    expect(isThere()).toBe(true);
    watch.close();
    await expect.poll(isThere, { timeout: 20_000 }).toBe(false);
  }, 60_000);
});

it('the processes of the machine are looked at once for all stages that are watched at the time', () => {
  // Stages of other tests in this process may have been looked at until now.
  const at = performance.now() + 500;
  const tree = recentTree(at);
  expect(recentTree(at + 400)).toBe(tree);
  expect(recentTree(at + 500)).not.toBe(tree);
  expect(descendantsOf(process.ppid, tree).map(({ pid }) => pid)).toContain(process.pid);
});

/** The list of processes that must not outlive their owner, where the disk has no room for all of it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { killLeftovers, Leftovers } from '../src/process/leftovers.ts';
import { identityOf, type ProcessIdentity } from '../src/system/proc.ts';

let folder: string;
let file: string;
let child: ChildProcess;
let listed: ProcessIdentity;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-leftovers-'));
  file = join(folder, 'list');
  child = spawn('sleep', ['600'], { stdio: 'ignore' });
  listed = identityOf(child.pid ?? 0);
});
afterEach(async () => {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true });
});

it('has all that came behind a line which was cut short', async () => {
  const list = new Leftovers(file);
  appendFileSync(file, '12 34');
  list.add([listed]);
  expect(await killLeftovers(file)).toBe(1);
});

it('is written anew beside itself: a full disk, or an end in the middle, leaves the one before', async () => {
  const list = new Leftovers(file);
  const many = Array.from({ length: 600 }, (_none, at) => ({ pid: 4_000_000 + at, startTime: '1' }));
  list.add(many);
  const before = readFileSync(file, 'utf8');
  const kept = openSync(file, 'r');
  try {
    list.remove(many);
    list.add([listed]);
    expect(readFileSync(kept, 'utf8')).toBe(before);
  } finally {
    closeSync(kept);
  }
  // Where that cannot be: in the list as it is.
  mkdirSync(`${file}.new`);
  list.add(many);
  list.remove(many);
  list.add([listed]);
  expect(readFileSync(file, 'utf8').split('\n').length).toBeGreaterThan(600);
  expect(await killLeftovers(file)).toBe(1);
});

/** Where the pipes between a Pod's guard and its stage stand, in a folder like the one that a node makes in memory: everybody's, and sticky. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { guardScript, lineScript, starterScript } from '../src/pod/scripts.ts';

const STICKY = 0o1000;
const folder = mkdtempSync(join(tmpdir(), 'penstock-guard-'));
let guard: ChildProcess;

beforeAll(async () => {
  chmodSync(folder, 0o1777);
  guard = spawn('sh', ['-c', guardScript.replaceAll('/penstock', folder), 'penstock-guard', lineScript], {
    stdio: 'ignore',
    detached: true,
    env: {
      ...process.env,
      PENSTOCK_POD_UID: 'u',
      PENSTOCK_SETUP_SECS: '60',
      PENSTOCK_TERM_MS: '1',
      PENSTOCK_WINDOW: '2',
    },
  });
  await vi.waitUntil(() => existsSync(join(folder, 'ready')), { timeout: 20_000, interval: 5 });
});
afterAll(async () => {
  if (guard.pid !== undefined) process.kill(-guard.pid, 'SIGKILL');
  await once(guard, 'exit');
  rmSync(folder, { recursive: true });
});

it('P36: a pipe of the stage is in no sticky folder, where a kernel that protects pipes refuses it to the user of the stage', () => {
  const opened = [...starterScript.matchAll(/\d[<>](\/penstock\/\S+)/gu)].map(([, path = '']) => path);
  expect(opened).toHaveLength(5);
  for (const path of opened) {
    const pipe = path.replace('/penstock', folder);
    expect(statSync(pipe).isFIFO(), path).toBe(true);
    expect(statSync(dirname(pipe)).mode & STICKY, path).toBe(0);
  }
});

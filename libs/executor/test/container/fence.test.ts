/** Nothing in a container outlives its owner (P15, P17). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sweepContainers } from '../../src/container/sweep.ts';
import { killLeftovers } from '../../src/process/leftovers.ts';
import { processesWith } from '../../src/testing/processes.ts';
import { containersOf, engineForTests } from '../../src/testing-containers/test-images.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
const engine = await engineForTests('the end of containers with their owner');

describe.skipIf(engine === null)('nothing in a container outlives its owner', () => {
  let folder: string;
  let owners = 0;
  let owner = '';
  let child: ChildProcess;
  let messages: Record<string, unknown>[] = [];
  let onMessage: () => void = () => {};

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-fence-'));
  });
  afterEach(async () => {
    child.kill('SIGKILL');
    await sweep(owner);
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(guarded: boolean, deadlineMs = 0): Promise<number> {
    owners += 1;
    owner = `fence-${process.pid}-${owners}`;
    messages = [];
    const args = [
      owner,
      JSON.stringify(engine),
      guarded ? 'guarded' : 'alone',
      String(deadlineMs),
      join(folder, 'leftovers'),
    ];
    child = spawn(process.execPath, [OWNER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    if (child.stdout === null) throw new Error('no stdout');
    createInterface({ input: child.stdout }).on('line', (line) => {
      messages.push(JSON.parse(line) as Record<string, unknown>);
      onMessage();
    });
    return Number((await message('up'))['guard']);
  }

  async function message(field: string): Promise<Record<string, unknown>> {
    for (;;) {
      const found = messages.find((line) => field in line);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        onMessage = resolve;
      });
    }
  }

  const sweep = (of: string): Promise<number> => (engine === null ? Promise.resolve(0) : sweepContainers(engine, of));
  const processes = (): number[] => processesWith(`OWNER_MARK=${owner}`).filter((pid) => pid !== child.pid);
  const gone = async (): Promise<void> => {
    await expect.poll(processes, { timeout: 15_000, interval: 20 }).toEqual([]);
  };

  it('that is killed with SIGKILL, services included; what is left on the disk goes at the next start', async () => {
    await start(true);
    await expect.poll(() => processes().length, { timeout: 15_000, interval: 20 }).toBeGreaterThanOrEqual(4);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await gone();
    await sweep(owner);
    expect(containersOf(engine, owner)).toEqual([]);
  });

  it('that is frozen past its deadline, while it is still frozen', async () => {
    await start(true, 1_500);
    child.kill('SIGSTOP');
    await gone();
    child.kill('SIGCONT');
    expect(await message('guardGone')).toEqual({ guardGone: 'it fired' });
    expect((await message('exit'))['exit']).toMatchObject({ kind: 'lost' });
    expect(containersOf(engine, owner)).toEqual([]);
  });

  it('nor does it go on when the guard alone is killed', async () => {
    const guard = await start(true);
    process.kill(guard, 'SIGKILL');
    expect((await message('exit'))['exit']).toMatchObject({ kind: 'lost' });
    expect(processes()).toEqual([]);
    expect(containersOf(engine, owner)).toEqual([]);
  });

  it('nor the stage when owner and guard are killed at once; its services go at the next start', async () => {
    const guard = await start(true);
    process.kill(guard, 'SIGSTOP');
    child.kill('SIGKILL');
    process.kill(guard, 'SIGKILL');
    await expect.poll(() => processes().length, { timeout: 15_000, interval: 20 }).toBeLessThanOrEqual(1);
    expect(await killLeftovers(join(folder, 'leftovers'))).toBeLessThanOrEqual(1);
    expect(processes()).toEqual([]);
  });

  it('and another owner of the machine keeps its own', async () => {
    await start(true);
    expect(await sweep(`${owner} of another`)).toBe(0);
    expect(await sweep(owner)).toBe(0);
    expect(processes().length).toBeGreaterThanOrEqual(4);
  });
});

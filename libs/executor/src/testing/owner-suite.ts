/**
 * What every executor promises of its owner's end (P15), as tests: nothing of a stage outlives the process that has started it,
 * killed or frozen. `owner` is a program that holds stages which never end, ignore signals and have OWNER_MARK in their
 * environment; it prints lines of JSON: `up` once they run, `guardGone` and `exits` (or `exit`) once they have been ended.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { processesWith } from './processes.ts';

export interface OwnerSuiteOptions {
  /** The command of an owner; 0: its guard has no deadline. */
  readonly command: (mark: string, deadlineMs: number) => readonly string[];
  /** Removes what a killed owner may leave on the disk, as the next start does. */
  readonly sweep?: ((mark: string) => Promise<unknown>) | undefined;
}

const GONE_MS_MAX = 30_000;
const TEST_MS_MAX = 120_000;
const DEADLINE_MS = 2_500;

export function runOwnerSuite(name: string, { command, sweep }: OwnerSuiteOptions): void {
  describe(`${name}: nothing outlives its owner`, () => {
    let child: ChildProcess | undefined;
    let mark = '';
    let owners = 0;
    const said: Record<string, unknown>[] = [];
    let onLine = (): void => {};

    afterEach(async () => {
      child?.kill('SIGKILL');
      await sweep?.(mark);
    });

    async function start(deadlineMs: number): Promise<ChildProcess> {
      owners += 1;
      mark = `suite-owner-${process.pid}-${owners}`;
      said.length = 0;
      const [file = '', ...args] = command(mark, deadlineMs);
      const started = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      child = started;
      createInterface({ input: started.stdout }).on('line', (line) => {
        said.push(JSON.parse(line) as Record<string, unknown>);
        onLine();
      });
      await message('up');
      return started;
    }

    async function message(...fields: readonly string[]): Promise<Record<string, unknown>> {
      for (;;) {
        const found = said.find((line) => fields.some((field) => field in line));
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          onLine = resolve;
        });
      }
    }

    const running = (): number[] => processesWith(`OWNER_MARK=${mark}`).filter((pid) => pid !== child?.pid);
    const gone = async (): Promise<void> => {
      await expect.poll(running, { timeout: GONE_MS_MAX, interval: 20 }).toEqual([]);
    };

    it(
      'that is killed',
      async () => {
        const owner = await start(0);
        expect(running().length).toBeGreaterThanOrEqual(2);
        const ended = once(owner, 'exit');
        owner.kill('SIGKILL');
        await ended;
        await gone();
      },
      TEST_MS_MAX,
    );

    it(
      'that is frozen past its deadline, while it is still frozen; it learns so when it wakes',
      async () => {
        const owner = await start(DEADLINE_MS);
        owner.kill('SIGSTOP');
        await gone();
        owner.kill('SIGCONT');
        expect(await message('guardGone')).toEqual({ guardGone: 'it fired' });
        const { exits, exit } = await message('exits', 'exit');
        for (const each of [exits ?? exit].flat()) expect(each).toMatchObject({ kind: 'lost' });
      },
      TEST_MS_MAX,
    );
  });
}

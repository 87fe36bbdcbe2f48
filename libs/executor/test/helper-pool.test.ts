import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ControlGroup, ControlGroups } from '../src/limits/control-groups.ts';
import { defaultLimits } from '../src/limits/stage-limits.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import { descendantsOf } from '../src/system/proc.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

/** Each helper's launcher, and what that has started has others: a helper that has served has its next process there, too. */
function launched(): number {
  return descendantsOf(process.pid).filter(({ pid }) =>
    readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${process.pid}\n`),
  ).length;
}

it('helpers that have rested for long are ended down to those that last, and no other (HELPERPOOL-3)', async () => {
  const before = descendantsOf(process.pid).length;
  const launchedBefore = launched();
  const executor = new ProcessExecutor({ idleMax: 8, idleLasting: 1, restMsMax: 500, warn: () => {} });
  const stage = async (helperKey: string): Promise<string> => {
    const sink = new RecordingSink();
    const commands = [{ script: 'echo up', bindings: {} }];
    await executor.start({ helperKey, commands, env: {}, cwd: '/', timeoutMs: 60_000 }, sink).ended;
    return sink.text();
  };
  try {
    await executor.prewarm(1);
    await Promise.all(['a', 'b', 'c', 'd'].map(stage));
    expect(launched() - launchedBefore).toBe(4);
    await expect.poll(() => launched() - launchedBefore, { timeout: 30_000 }).toBe(1);
    // The one that is left, and new ones, serve on.
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(stage))).toEqual(['up\n', 'up\n', 'up\n', 'up\n']);
  } finally {
    await executor.close();
  }
  expect(descendantsOf(process.pid).length).toBe(before);
}, 60_000);

/** Control groups that fail in this order, and then hold what they are given. */
function failing(made: (NodeJS.ErrnoException | null)[], added: (NodeJS.ErrnoException | null)[]) {
  const removed: number[] = [];
  let count = 0;
  const make = (): ControlGroup => {
    const number = (count += 1);
    const error = made.shift();
    if (error) throw error;
    return {
      add: () => Promise.resolve(added.shift() ?? null).then((refused) => refused && Promise.reject(refused)),
      setMemory: () => {},
      setCpu: () => {},
      counts: () => ({ oomKills: 0, refused: 0 }),
      remove: () => void removed.push(number),
    } as unknown as ControlGroup;
  };
  return { groups: { version: 1, make } as unknown as ControlGroups, removed, made: () => count };
}
const refusal = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

it.each([
  { what: 'taken away as its file was open', made: [], added: [refusal('ENODEV')], groups: 2, warnings: 0 },
  { what: 'taken away before that', made: [], added: [refusal('ENOENT')], groups: 2, warnings: 0 },
  { what: 'taken away as it was made', made: [refusal('ENOENT')], added: [], groups: 2, warnings: 0 },
  { what: 'not to be had', made: [refusal('ENOSPC')], added: [], groups: 1, warnings: 1 },
])(
  'a control group that is $what costs no stage',
  async ({ made, added, groups, warnings }) => {
    const world = failing(made, added);
    const warned: string[] = [];
    const executor = new ProcessExecutor({
      groups: world.groups,
      limits: defaultLimits('/'),
      warn: (message) => void warned.push(message),
    });
    try {
      const sink = new RecordingSink();
      const commands = [{ script: 'grep processes /proc/self/limits; echo up', bindings: {} }];
      await executor.start({ helperKey: 'a', commands, env: {}, cwd: '/', timeoutMs: 60_000 }, sink).ended;
      expect(sink.text()).toMatch(/up\n$/u);
      // Where no group counts them each stage bounds itself.
      const processes = Number(/^Max processes +(\d+)/u.exec(sink.text())?.[1] ?? Infinity);
      expect(warnings > 0 ? processes : 0).toBeLessThanOrEqual(defaultLimits('/').processes);
      // Where there are no namespaces there is no group either.
      const isBounded = executor.isolation !== 'group';
      expect(isBounded ? [world.made() >= groups, warned.length] : [true, warnings]).toEqual([true, warnings]);
    } finally {
      await executor.close();
    }
  },
  60_000,
);

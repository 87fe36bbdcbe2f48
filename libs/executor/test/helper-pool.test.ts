import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
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

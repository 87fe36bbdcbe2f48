import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const SOURCE = JSON.stringify(new URL('../src/process/heap-growth.ts', import.meta.url).href);
const TAG = "console.log(process.getBuiltinModule('node:v8').cachedDataVersionTag());";

/** What V8 makes of all its flags. */
function flagsOf(program: string, args: readonly string[], options: string): number {
  const { stdout } = spawnSync(process.execPath, [...args, '--input-type=module', '--eval', program], {
    env: { ...process.env, NODE_OPTIONS: options },
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^\d+\n$/);
  return Number(stdout);
}

const bounded = `(await import(${SOURCE})).boundGrowthOfHeaps(process.env); ${TAG}`;

it("a server's heaps grow by half of what is in use, also where its user has set a young space of his own", () => {
  for (const options of ['--max-semi-space-size=8', '--max-semi-space-size=8 --max-semi-space-size=24']) {
    const expected = flagsOf(TAG, ['--heap-growing-percent=50'], options);
    expect(flagsOf(TAG, [], options)).not.toBe(expected);
    expect(flagsOf(bounded, [], options)).toBe(expected);
  }
});

it('the heap of a command that is no server is left to V8', () => {
  expect(flagsOf(bounded, [], '')).toBe(flagsOf(TAG, [], ''));
});

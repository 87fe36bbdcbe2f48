import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LONG } from './longest-first.ts';
import { changesProcess, filesOfSharedProcesses } from './shared-process.ts';

it.each([
  "vi.useFakeTimers({ toFake: ['setInterval'] });",
  "const reads = vi.spyOn(run.state.stages, 'get');",
  "vi.mock('../src/index.ts');",
  "process.env['TZ'] = 'UTC';",
  'process.chdir(folder);',
  'Object.assign(process.env, { TZ });',
  'process.exitCode = 1;',
  'Date.now = () => 0;',
  "setFlagsFromString('--expose-gc');",
])('a file with %s has a process of its own', (text) => {
  expect(changesProcess(text)).toBe(true);
});

it.each(["const path = process.env['PATH'] ?? '';", 'const failed = vi.fn<() => void>();'])(
  'a file with %s shares its process',
  (text) => {
    expect(changesProcess(text)).toBe(false);
  },
);

it('those of packages share one, but for what is long, and what a helper of theirs changes', () => {
  const files = filesOfSharedProcesses(join(import.meta.dirname, '../..'));
  expect(files).toContain('libs/run/test/run-id.test.ts');
  expect(files.filter((path) => path.includes('.long.') || LONG.includes(path))).toEqual([]);
  // Its server of a database listens to the process.
  expect(files).not.toContain('libs/store/test/mongodb-answers.test.ts');
});

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
  "process.on('uncaughtException', note);",
  'Date.now = () => 0;',
  "setFlagsFromString('--expose-gc');",
  "const left = queryObjects(Promise, { format: 'count' });",
])('a file with %s has a process of its own', (text) => {
  expect(changesProcess(text)).toBe(true);
});

it.each([
  "const path = process.env['PATH'] ?? '';",
  'const failed = vi.fn<() => void>();',
  "process.once('exit', end);",
])('a file with %s shares its process', (text) => {
  expect(changesProcess(text)).toBe(false);
});

it('all share one, but for what is long, and what a helper of theirs changes', () => {
  const files = filesOfSharedProcesses(join(import.meta.dirname, '../..'));
  expect(files).toContain('libs/run/test/run-id.test.ts');
  expect(files.filter((path) => path.includes('.long.') || LONG.includes(path))).toEqual([]);
  expect(files).toContain('test/e2e/caches.test.ts');
  // Its checkout ends processes.
  expect(files).not.toContain('test/bootstrap/broker.test.ts');
});

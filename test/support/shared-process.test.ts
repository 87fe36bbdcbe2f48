import { expect, it } from 'vitest';
import { changesProcess } from './shared-process.ts';

it.each([
  "vi.useFakeTimers({ toFake: ['setInterval'] });",
  "const reads = vi.spyOn(run.state.stages, 'get');",
  "vi.mock('../src/index.ts');",
  "process.env['TZ'] = 'UTC';",
  'process.chdir(folder);',
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

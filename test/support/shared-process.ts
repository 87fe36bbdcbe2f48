/**
 * Which test files share a process with others (vitest's `isolate: false`): a third of the processor's time of a short file is
 * its process and the modules it loads. They are those of packages whose modules keep no state but caches, less those that change
 * something which the next file in the process would see. A file that is in doubt has a process of its own.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGES = [
  'libs/config',
  'libs/errors',
  'libs/identity',
  'libs/migrate',
  'libs/pipeline',
  'libs/run',
  'services/auth',
  'services/scheduler',
];

/** Fake timers, replaced methods and modules, the process's own settings, and what its heap holds. */
const CHANGES_PROCESS =
  /\bvi\.(?:use|spyOn|stub|mock|doMock|hoisted|set)|\bprocess\.(?:chdir|kill|on|once|umask|memoryUsage)\b|\bprocess\.env\[[^\]]+\] *=[^=]|\bdelete process\.env|\bObject\.assign\(process\b|\bprocess\.exitCode *=[^=]|\b(?:Math\.random|Date\.now) *=[^=]|\binjectFaults\b|\bsetFlagsFromString\b|\bglobalThis\b|\.prototype\b/;

export function changesProcess(text: string): boolean {
  return CHANGES_PROCESS.test(text);
}

/** Paths below the root, with slashes. */
export function filesOfSharedProcesses(root: string): string[] {
  return PACKAGES.flatMap((path) => globSync(`${path}/test/**/*.test.ts`, { cwd: root }))
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !path.endsWith('.long.test.ts') && !changesProcess(readFileSync(join(root, path), 'utf8')));
}

/**
 * Which test files share a process with others (vitest's `isolate: false`): a third of the processor's time of a short file is
 * its process and the modules it loads. They are those whose modules keep no state but caches, less the long ones, which
 * begin first, and less those that change something which the next file in the process would see, by themselves or by a helper in
 * a folder of tests. A file that is in doubt has a process of its own.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LONG } from './longest-first.ts';

const PLACES = ['libs/*/test', 'services/*/test', 'cli/test', 'deploy', 'test/*'];

/** Fake timers, replaced methods and modules, the process's own settings, and what its heap holds. Who listens to its end alone changes nothing. */
const CHANGES_PROCESS =
  /\bvi\.(?:use|spyOn|stub|mock|doMock|hoisted|set)|\bprocess\.(?:chdir|kill|umask|memoryUsage)\b|\bprocess\.(?:on|once)\((?!'exit')|\bprocess\.env\[[^\]]+\] *=[^=]|\bdelete process\.env|\bObject\.assign\(process\b|\bprocess\.exitCode *=[^=]|\b(?:Math\.random|Date\.now) *=[^=]|\binjectFaults\b|\bsetFlagsFromString\b|\bqueryObjects\b|\bglobalThis\b|\.prototype\b/;

export function changesProcess(text: string): boolean {
  return CHANGES_PROCESS.test(text);
}

/** Paths below the root, with slashes. */
export function filesOfSharedProcesses(root: string): string[] {
  return PLACES.flatMap((path) => globSync(`${path}/**/*.test.ts`, { cwd: root }))
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !path.endsWith('.long.test.ts') && !LONG.includes(path) && !anyChangesProcess(join(root, path)));
}

/** The file, or what stands in a folder of tests that it is made of. */
function anyChangesProcess(path: string, seen = new Set<string>()): boolean {
  seen.add(path);
  const text = readFileSync(path, 'utf8');
  return changesProcess(text) || helpersOf(path, text).some((each) => !seen.has(each) && anyChangesProcess(each, seen));
}

function helpersOf(path: string, text: string): string[] {
  return [...text.matchAll(/\bfrom '(\.[^']+\.ts)'/gu)]
    .map(([, name = '']) => join(dirname(path), name))
    .filter((each) => /[\\/]test[\\/]/u.test(each) && existsSync(each));
}

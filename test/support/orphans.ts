/** Processes that should not be there any more, found through /proc by what stands in their environment or command line. */
import { readFileSync } from 'node:fs';
import { allProcesses } from './processes.ts';

/** Stages of a load carry its token in their environment. */
export function processesWithToken(token: string): string[] {
  return matching((pid) => readFileSync(`/proc/${pid}/environ`, 'latin1').includes(token));
}

/** What a cluster has started names its folder, in its environment or its command line. */
export function processesOfFolder(folder: string): string[] {
  return matching(
    (pid, command) => command.includes(folder) || readFileSync(`/proc/${pid}/environ`, 'latin1').includes(folder),
  );
}

function matching(matches: (pid: number, command: string) => boolean): string[] {
  return allProcesses().flatMap(({ pid, state, command }) => {
    if (pid === process.pid || state === 'Z' || state === 'X') return [];
    try {
      return matches(pid, command) ? [`pid ${pid}: ${command.slice(0, 200)}`] : [];
    } catch {
      // It has ended meanwhile, or is the kernel's.
      return [];
    }
  });
}

import { readFileSync } from 'node:fs';

/** Milliseconds of all of its threads, and of what it has waited for. */
export function processorTimes(pid: number): { readonly own: number; readonly programs: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0, programsUser = 0, programsSystem = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number);
  return { own: (user + system) * 10, programs: (programsUser + programsSystem) * 10 };
}

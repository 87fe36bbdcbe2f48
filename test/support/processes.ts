/** Looking at processes through /proc. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly command: string;
  /** With the pid, tells a process from a later one of the same number. */
  readonly startTime: string;
}

export function allProcesses(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processInfo(Number(name)) ?? []);
}

export function processInfo(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parent: Number(fields[1]), state: fields[0] ?? '', command, startTime: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

/** All processes that descend from this one, itself not included. */
export function descendantsOf(root: number): ProcessInfo[] {
  const everything = allProcesses();
  const found: ProcessInfo[] = [];
  const parents = new Set([root]);
  for (let before = -1; before !== found.length;) {
    before = found.length;
    for (const info of everything) {
      if (!parents.has(info.pid) && parents.has(info.parent)) {
        parents.add(info.pid);
        found.push(info);
      }
    }
  }
  return found;
}

/** Still the same process, and not a zombie. */
export function lives(info: ProcessInfo): boolean {
  const now = processInfo(info.pid);
  return now !== undefined && now.startTime === info.startTime && now.state !== 'Z' && now.state !== 'X';
}

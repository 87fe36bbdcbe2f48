/**
 * What this package reads from /proc, and nothing else of it. Everything answers null or empty where there is no /proc.
 *
 * All of it as UTF-8: of a file that does not say how long it is Node reads any other encoding into 64 KiB of its own, and some
 * hundred such reads at each start of a helper kept the collector busy.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { uptimeMs } from '@penstock/async';

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, as text: field 22 of /proc/<pid>/stat. Empty where there is no /proc. */
  readonly startTime: string;
}

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly startTime: string;
}

function statOf(pid: number): Stat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The second field is the program's name in parentheses and may hold anything, parentheses too.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parent: Number(fields[1]), group: Number(fields[2]), startTime: fields[19] ?? '' };
}

export function identityOf(pid: number): ProcessIdentity {
  return { pid, startTime: statOf(pid)?.startTime ?? '' };
}

/** A zombie counts as gone: it executes nothing. */
export function isAlive(process: ProcessIdentity): boolean {
  const stat = statOf(process.pid);
  return stat !== null && stat.startTime === process.startTime && stat.state !== 'Z' && stat.state !== 'X';
}

/** Kills exactly that process, never a later one of its number; false where it is gone. */
export function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (target.startTime !== '' && !isAlive(target)) return false;
  try {
    process.kill(target.pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** All living descendants of a process, in no order. A process that is forked meanwhile may be missing. */
export function descendantsOf(ancestor: number, tree = new ProcessTree()): ProcessIdentity[] {
  const found: ProcessIdentity[] = [];
  const open = [ancestor];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of tree.childrenOf(pid)) {
      open.push(child.pid);
      if (child.stat.state !== 'Z') found.push({ pid: child.pid, startTime: child.stat.startTime });
    }
  }
  return found;
}

/** All processes of the machine, as they were when it was made: some ten microseconds each. */
export class ProcessTree {
  readonly #children = new Map<number, { readonly pid: number; readonly stat: Stat }[]>();

  constructor() {
    for (const each of everyProcess()) {
      const siblings = this.#children.get(each.stat.parent);
      if (siblings === undefined) this.#children.set(each.stat.parent, [each]);
      else siblings.push(each);
    }
  }

  childrenOf(pid: number): readonly { readonly pid: number; readonly stat: Stat }[] {
    return this.#children.get(pid) ?? [];
  }
}

/** All living processes of a process group. */
export function membersOf(group: number): ProcessIdentity[] {
  return everyProcess()
    .filter(({ stat }) => stat.group === group && stat.state !== 'Z')
    .map(({ pid, stat }) => ({ pid, startTime: stat.startTime }));
}

/** The first process of the PID namespace that a descendant of this one, at most two generations on, has made; or null. */
export function initBelow(pid: number): ProcessIdentity | null {
  const children = childrenOf(pid);
  for (const found of [...children, ...children.flatMap(childrenOf)]) if (isInit(found)) return identityOf(found);
  return null;
}

function isInit(pid: number): boolean {
  const numbers = /^NSpid:\s+(.*)$/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1]?.split(/\s+/) ?? [];
  return numbers.length > 1 && numbers.at(-1) === '1';
}

function childrenOf(pid: number): number[] {
  let listed: string;
  try {
    listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch {
    // A kernel without the list of children, or it is gone.
    return everyProcess().flatMap((other) => (other.stat.parent === pid ? [other.pid] : []));
  }
  return listed.split(' ').filter(Boolean).map(Number);
}

function everyProcess(): { readonly pid: number; readonly stat: Stat }[] {
  const found: { pid: number; stat: Stat }[] = [];
  for (const entry of readdirOrEmpty('/proc')) {
    const pid = Number(entry);
    const stat = Number.isInteger(pid) ? statOf(pid) : null;
    if (stat !== null) found.push({ pid, stat });
  }
  return found;
}

/** Milliseconds since boot, suspension included; comparable between all processes of the machine (P15). */
export function bootClockMs(): number {
  return Math.round(uptimeMs());
}

/** Tells one boot from the next, so that listed start times cannot be taken for those of another. */
export function bootId(): string {
  return readOrEmpty('/proc/sys/kernel/random/boot_id').trim();
}

/** Own descriptors above 2 that a child would inherit: left open by whoever started this process. */
export function inheritableDescriptors(): number[] {
  const CLOSE_ON_EXEC = 0o2000000;
  const found: number[] = [];
  for (const entry of readdirOrEmpty('/proc/self/fd')) {
    const fd = Number(entry);
    if (fd <= 2) continue;
    const flags = /^flags:\s*(\d+)/m.exec(readOrEmpty(`/proc/self/fdinfo/${fd}`))?.[1];
    if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0 && isOpen(fd)) found.push(fd);
  }
  return found;
}

/** The listing holds the descriptor that it was read through. */
function isOpen(fd: number): boolean {
  try {
    readlinkSync(`/proc/self/fd/${fd}`);
    return true;
  } catch {
    return false;
  }
}

function readdirOrEmpty(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Control groups of helpers: what the kernel itself bounds and counts. Version 2 where this process may divide its own group,
 * else version 1 where its groups of memory and processes can be written to.
 *
 * GROUPS-1. A group holds one helper from before its first stage, and goes with it.
 * GROUPS-2. What an earlier owner has left is removed by the next: an empty group is nobody's.
 */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StageLimits } from './stage-limits.ts';

const NAME = 'penstock-';
const CPU_PERIOD_US = 100_000;

/** The files of one version. */
interface Layout {
  readonly version: 1 | 2;
  /** Folders in which a group is made. */
  readonly parents: { readonly memory: string; readonly processes: string; readonly cpu: string | null };
}

export interface GroupCounts {
  /** Processes killed for want of memory. */
  readonly oomKills: number;
  /** Processes that could not be made. */
  readonly refused: number;
}

export class ControlGroups {
  readonly version: 1 | 2;
  readonly #layout: Layout;

  private constructor(layout: Layout) {
    this.#layout = layout;
    this.version = layout.version;
  }

  /** Null where this process may make none. `root`: of the mounted hierarchies. */
  static find(root = '/sys/fs/cgroup', own = ownGroups()): ControlGroups | null {
    for (const layout of [unified(root, own), divided(root, own)]) {
      if (layout === null) continue;
      try {
        const groups = new ControlGroups(layout);
        groups.#sweep();
        groups.make({ memoryBytes: 1024 ** 3, processes: 64 }).remove();
        return groups;
      } catch {
        // Not ours to write to.
      }
    }
    return null;
  }

  /** Which version `find` would choose, as far as looking tells; null: none. Nothing is made, and nobody moved. */
  static look(root = '/sys/fs/cgroup', own = ownGroups()): 1 | 2 | null {
    const path = divisible(root, own);
    if (path !== null && mayWrite(path) && mayWrite(join(path, 'cgroup.subtree_control'))) return 2;
    const parents = divided(root, own)?.parents;
    return parents !== undefined && mayWrite(parents.memory) && mayWrite(parents.processes) ? 1 : null;
  }

  make(limits: Pick<StageLimits, 'memoryBytes' | 'processes'>): ControlGroup {
    // Two executors of one process each make their own.
    return new ControlGroup(this.#layout, `${NAME}${randomUUID()}`, limits);
  }

  #sweep(): void {
    for (const parent of new Set(Object.values(this.#layout.parents)))
      if (parent !== null)
        for (const name of readdirSync(parent)) if (name.startsWith(NAME)) removeGroup(join(parent, name));
  }
}

export class ControlGroup {
  readonly #version: 1 | 2;
  readonly #memory: string;
  readonly #processes: string;
  readonly #cpu: string | null;
  /** Where its counts are read; opened by the first look. */
  #counters: { readonly memory: number | null; readonly processes: number | null } | null = null;

  constructor({ version, parents }: Layout, name: string, limits: Pick<StageLimits, 'memoryBytes' | 'processes'>) {
    this.#version = version;
    this.#memory = join(parents.memory, name);
    this.#processes = join(parents.processes, name);
    this.#cpu = parents.cpu === null ? null : join(parents.cpu, name);
    try {
      for (const folder of this.#folders()) mkdirSync(folder);
      writeFileSync(join(this.#processes, 'pids.max'), String(limits.processes));
      this.setMemory(limits.memoryBytes);
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** The kernel moves a process when all processors have seen that it will: milliseconds, in which this one does other work. */
  async add(pid: number): Promise<void> {
    await Promise.all(this.#folders().map((folder) => writeFile(join(folder, 'cgroup.procs'), String(pid))));
  }

  setMemory(bytes: number): void {
    if (this.#version === 2) {
      writeFileSync(join(this.#memory, 'memory.max'), String(bytes));
      tryWrite(join(this.#memory, 'memory.swap.max'), '0');
      return;
    }
    // The bound with swap is never below the one without.
    tryWrite(join(this.#memory, 'memory.memsw.limit_in_bytes'), '-1');
    writeFileSync(join(this.#memory, 'memory.limit_in_bytes'), String(bytes));
    tryWrite(join(this.#memory, 'memory.memsw.limit_in_bytes'), String(bytes));
  }

  /** `cores`: undefined for all of them. */
  setCpu(cores: number | undefined): void {
    if (this.#cpu === null) return;
    const quota = cores === undefined ? null : Math.max(1000, Math.round(cores * CPU_PERIOD_US));
    if (this.#version === 2) tryWrite(join(this.#cpu, 'cpu.max'), `${quota ?? 'max'} ${CPU_PERIOD_US}`);
    else tryWrite(join(this.#cpu, 'cpu.cfs_quota_us'), String(quota ?? -1));
  }

  /** Since it was made. */
  counts(): GroupCounts {
    this.#counters ??= {
      memory: openOrNull(join(this.#memory, this.#version === 2 ? 'memory.events' : 'memory.oom_control')),
      processes: openOrNull(join(this.#processes, 'pids.events')),
    };
    const { memory, processes } = this.#counters;
    return { oomKills: countIn(memory, OOM_KILLS), refused: countIn(processes, REFUSED) };
  }

  /** Where none of its processes is left. */
  remove(): void {
    for (const fd of Object.values(this.#counters ?? {})) if (fd !== null) closeSync(fd);
    this.#counters = { memory: null, processes: null };
    for (const folder of this.#folders()) removeGroup(folder);
  }

  #folders(): string[] {
    return [...new Set([this.#memory, this.#processes, ...(this.#cpu === null ? [] : [this.#cpu])])];
  }
}

/** Own groups by controller; `''` of version 2. */
function ownGroups(): ReadonlyMap<string, string> {
  const own = new Map<string, string>();
  for (const line of readOrEmpty('/proc/self/cgroup').split('\n')) {
    const [, controllers = '', path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path !== undefined) for (const controller of controllers.split(',')) own.set(controller, path);
  }
  return own;
}

function divided(root: string, own: ReadonlyMap<string, string>): Layout | null {
  const [memory, processes, cpu] = ['memory', 'pids', 'cpu'].map((name) => own.get(name));
  if (memory === undefined || processes === undefined) return null;
  return {
    version: 1,
    parents: {
      memory: join(root, 'memory', memory),
      processes: join(root, 'pids', processes),
      cpu: cpu === undefined ? null : join(root, 'cpu', cpu),
    },
  };
}

/** The own group of version 2 with what a stage is bounded by; null where there is none. */
function divisible(root: string, own: ReadonlyMap<string, string>): string | null {
  const path = own.get('');
  if (path === undefined) return null;
  const available = controllersOf(join(root, path));
  return available.includes('memory') && available.includes('pids') ? join(root, path) : null;
}

function controllersOf(folder: string): string[] {
  return readOrEmpty(join(folder, 'cgroup.controllers')).trim().split(/\s+/);
}

/** A group that has processes of its own gives its children no controllers: they move into one of its children first. */
function unified(root: string, own: ReadonlyMap<string, string>): Layout | null {
  const folder = divisible(root, own);
  if (folder === null) return null;
  const hasCpu = controllersOf(folder).includes('cpu');
  try {
    const self = join(folder, 'penstock');
    mkdirSync(self, { recursive: true });
    for (const pid of readOrEmpty(join(folder, 'cgroup.procs')).split('\n'))
      if (pid !== '') tryWrite(join(self, 'cgroup.procs'), pid);
    writeFileSync(join(folder, 'cgroup.subtree_control'), `+memory +pids${hasCpu ? ' +cpu' : ''}`);
  } catch {
    return null;
  }
  return { version: 2, parents: { memory: folder, processes: folder, cpu: hasCpu ? folder : null } };
}

const OOM_KILLS = /^oom_kill (\d+)/m;
const REFUSED = /^max (\d+)/m;
/** The files of events have a few short lines. */
const counterText = Buffer.alloc(4_096);

function countIn(fd: number | null, line: RegExp): number {
  if (fd === null) return 0;
  try {
    return Number(
      line.exec(counterText.toString('latin1', 0, readSync(fd, counterText, 0, counterText.length, 0)))?.[1] ?? 0,
    );
  } catch {
    // The group is gone.
    return 0;
  }
}

function openOrNull(file: string): number | null {
  try {
    return openSync(file, 'r');
  } catch {
    return null;
  }
}

function removeGroup(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Processes are in it, or it is gone.
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function tryWrite(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // This kernel has it not.
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

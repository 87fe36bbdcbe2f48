/**
 * How many helpers of plain processes are kept idle: those of keys that take turns. A key that has none waits for one to start,
 * which costs as much as ten stages: with 64 kept, 400 pipelines in turn ran at a third of one's rate.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { machineMemory } from '@penstock/service';

/** Measured: 0.4 MB of its processes, 0.35 MB of the kernel's for their namespaces, 0.05 MB of this process. */
const HELPER_BYTES = 1024 ** 2;
const MEMORY_SHARE = 1 / 50;
/** A launcher, what watches over the namespace, its first process, and a stage's own while it has one; descriptors as this process has them. */
const PROCESSES_EACH = 4;
const DESCRIPTORS_EACH = 10;
/** Of what this process may have of either. */
const COUNT_SHARE = 1 / 4;
const IDLE_MIN = 16;
/** Of each two processes are named to the guard, which ends them one by one. */
const IDLE_MAX = 512;

export interface HelperRoom {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly descriptors: number;
}

export function idleHelpersMax({ memoryBytes, processes, descriptors }: HelperRoom): number {
  const fit = Math.min(
    (memoryBytes * MEMORY_SHARE) / HELPER_BYTES,
    (processes * COUNT_SHARE) / PROCESSES_EACH,
    (descriptors * COUNT_SHARE) / DESCRIPTORS_EACH,
  );
  return Math.floor(Math.min(IDLE_MAX, Math.max(IDLE_MIN, fit)));
}

/** What there is of this machine for this process; what does not tell bounds nothing. */
export function helperRoom(groups = '/sys/fs/cgroup'): HelperRoom {
  const limits = readOrEmpty('/proc/self/limits');
  const soft = (name: string): number => numberOr(new RegExp(`^${name} +(\\d+)`, 'm').exec(limits)?.[1]);
  return {
    memoryBytes: machineMemory(),
    processes: Math.min(soft('Max processes'), groupProcesses(groups, readOrEmpty('/proc/self/cgroup'))),
    descriptors: soft('Max open files'),
  };
}

/** `own`: the groups of this process, a line each. */
export function groupProcesses(groups: string, own: string): number {
  const maxima = own.split('\n').flatMap((line) => {
    const [, controllers, path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const isVersion2 = controllers === '';
    if (!isVersion2 && controllers?.split(',').includes('pids') !== true) return [];
    return numberOr(readOrEmpty(join(groups, isVersion2 ? '' : 'pids', path, 'pids.max')).trim());
  });
  return Math.min(Infinity, ...maxima);
}

/** Infinity also of `max`, `unlimited` and what is not there. */
function numberOr(text: string | undefined): number {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : Infinity;
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

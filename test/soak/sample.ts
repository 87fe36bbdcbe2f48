/** What a started product takes of the machine at one moment: memory, handles, threads and processes, and bytes on the disk. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { descendantsOf } from '../support/processes.ts';
import type { RunningServer } from '../support/server.ts';
import type { Allowance } from './trends.ts';

const MIB = 1024 ** 2;
const KIB = 1024;

/**
 * What is kept of a run for a while stays in the journal for two hours and in `LOGS` until it is archived: it grows by runs, up to their bounds, and so do archived logs until retention takes them. Of one that
 * is deleted the store keeps a tombstone for 8 days, and the audit log who did it, for 400. The
 * runner keeps helpers for stages to come, as many as there was use for; each has three handles of the server's.
 */
export const FIGURES = {
  'server MiB': { floor: 64 * MIB, share: 0.2 },
  'server handles': { floor: 64, share: 0.1 },
  'server threads': { floor: 2, share: 0.1 },
  'broker MiB': { floor: 64 * MIB, share: 0.25 },
  'broker handles': { floor: 12, share: 0.1 },
  processes: { floor: 24, share: 0.1 },
  'processes MiB': { floor: 48 * MIB, share: 0.25 },
  'store MiB': { floor: 4 * MIB, share: 0.15, perRun: 3 * KIB },
  'store WAL MiB': { floor: 20 * MIB, share: 0 },
  'JOURNAL MiB': { floor: 8 * MIB, share: 0, perRun: 24 * KIB },
  'LOGS MiB': { floor: 8 * MIB, share: 0, perRun: 24 * KIB },
  'other streams MiB': { floor: 2 * MIB, share: 0.1 },
  'objects MiB': { floor: 1 * MIB, share: 0.1, perRun: 8 * KIB },
  'folders of runs': { floor: 8, share: 0.1 },
  'else in the data folder MiB': { floor: 4 * MIB, share: 0.1 },
} as const satisfies Record<string, Allowance>;

export type Figure = keyof typeof FIGURES;
export type Sample = Readonly<Record<Figure, number>>;

export const isBytes = (figure: Figure): boolean => figure.endsWith('MiB');

export function takeSample({ pid, dataDir }: RunningServer): Sample {
  const all = descendantsOf(pid);
  const broker = all.find(({ command }) => command.includes('nats-server'));
  const others = all.filter((info) => info !== broker);
  const streams = join(dataDir, 'broker', 'store', 'jetstream', 'PENSTOCK', 'streams');
  const [journal, logs] = ['JOURNAL', 'LOGS'].map((name) => bytesBelow(join(streams, name))) as [number, number];
  const [store, wal] = ['store.sqlite', 'store.sqlite-wal'].map((name) => sizeOf(join(dataDir, name))) as [
    number,
    number,
  ];
  const [allStreams, objects] = [bytesBelow(streams), bytesBelow(join(dataDir, 'objects'))];
  const runs = join(dataDir, 'work');
  return {
    'server MiB': residentBytes(pid),
    'server handles': handlesOf(pid),
    'server threads': entriesOf(`/proc/${pid}/task`),
    'broker MiB': broker === undefined ? 0 : residentBytes(broker.pid),
    'broker handles': broker === undefined ? 0 : handlesOf(broker.pid),
    processes: others.length,
    'processes MiB': others.reduce((sum, { pid: other }) => sum + residentBytes(other), 0),
    'store MiB': store,
    'store WAL MiB': wal,
    'JOURNAL MiB': journal,
    'LOGS MiB': logs,
    'other streams MiB': allStreams - journal - logs,
    'objects MiB': objects,
    'folders of runs': foldersOfRuns(runs),
    'else in the data folder MiB':
      bytesBelow(dataDir) - bytesBelow(join(dataDir, 'broker', 'store')) - store - wal - objects - bytesBelow(runs),
  };
}

function residentBytes(pid: number): number {
  const status = textOf(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * KIB;
}

function handlesOf(pid: number): number {
  return entriesOf(`/proc/${pid}/fd`);
}

/** 0: it is not there. */
function entriesOf(folder: string): number {
  return namesIn(folder).length;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** One below the folder of whose they are. */
function foldersOfRuns(folder: string): number {
  return namesIn(folder).reduce((sum, name) => sum + entriesOf(join(folder, name)), 0);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** What goes meanwhile counts as nothing. */
function bytesBelow(folder: string): number {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return 0;
  }
  let bytes = 0;
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += bytesBelow(path);
    else if (entry.isFile()) bytes += sizeOf(path);
  }
  return bytes;
}

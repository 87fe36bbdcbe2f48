/** Folders in memory, whose names say whose they are. */
import { randomUUID } from 'node:crypto';
import { existsSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identityOf } from './proc.ts';

export const MEMORY = '/dev/shm';

/**
 * A path that nothing has yet, of files that a stage alone is to find: in memory wherever there is such a folder, as in every
 * container. Where stages see the machine's, what a killed owner leaves there goes at the next start of any.
 */
export function newStageFolder(): string {
  return join(existsSync(MEMORY) ? MEMORY : tmpdir(), `.penstock-${ownerMark()}-${randomUUID()}`);
}

/** Of this process, and of no later one with its number. */
export function ownerMark(): string {
  const { pid, startTime } = identityOf(process.pid);
  return `${pidNamespace()}-${pid}-${startTime}`;
}

/** Its number, 0 where there are none. */
export function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
  } catch {
    return '0';
  }
}

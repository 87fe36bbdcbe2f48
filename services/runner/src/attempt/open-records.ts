/** The records of attempts in a runner's folder, where what they say can be relied upon. */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, realpathSync, rmdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { FolderLock } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';
import { AttemptRecordsOnDisk, NO_RECORDS, type AttemptRecords } from './attempt-records.ts';

const MEMORY = '/dev/shm';
const TMPFS = 0x0102_1994;
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** `lock`: on the folder; let go with what is answered. Attempts end with their process where the machine does not name its starts. */
export function openRecords(folder: string, lock: FolderLock, log: Log): AttemptRecords {
  const boot = bootId();
  if (boot === null) return { ...NO_RECORDS, close: () => lock.release() };
  const memory = memoryFolderOf(folder);
  const folders = {
    disk: join(folder, 'attempts'),
    memory,
    makeMemory: () => memory !== undefined && makeOwn(memory),
  };
  return new AttemptRecordsOnDisk(folders, boot, log, () => {
    if (memory !== undefined) removeEmpty(memory);
    lock.release();
  });
}

/** Of this folder's runner alone. Undefined: there is no memory to keep files in. */
function memoryFolderOf(folder: string): string | undefined {
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 32);
  try {
    return statfsSync(MEMORY).type === TMPFS ? join(MEMORY, `penstock-${name}`) : undefined;
  } catch {
    return undefined;
  }
}

/** False: somebody else has made it before. */
function makeOwn(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const found = lstatSync(path);
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o777) === 0o700;
  } catch {
    return false;
  }
}

/** What is in it is taken up by the next process. */
function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // It is not there, or not empty.
  }
}

function bootId(): string | null {
  try {
    return readFileSync(BOOT_ID, 'utf8').trim();
  } catch {
    return null;
  }
}

/** The records of attempts in a runner's folder, where what they say can be relied upon. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Log } from '@penstock/telemetry/log';
import { AttemptRecordsOnDisk, NO_RECORDS, type AttemptRecords } from './attempt-records.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** Attempts end with their process where another one has the folder, or where the machine does not name its starts. */
export function openRecords(folder: string, log: Log): AttemptRecords {
  const boot = bootId();
  if (boot === null) return NO_RECORDS;
  const lock = lockOf(folder);
  if (lock !== null) return new AttemptRecordsOnDisk(join(folder, 'attempts'), boot, log, () => lock.close());
  log.warn({ folder }, 'another runner uses this folder: stages of Pods end with this process');
  return NO_RECORDS;
}

function bootId(): string | null {
  try {
    return readFileSync(BOOT_ID, 'utf8').trim();
  } catch {
    return null;
  }
}

/** Let go by the kernel when its process is dead: who holds it is the only one. Null: another has it. */
function lockOf(folder: string): DatabaseSync | null {
  const database = new DatabaseSync(join(folder, 'lock'));
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return database;
  } catch {
    database.close();
    return null;
  }
}

/**
 * Makes an installation's data folder from a backup, for a server that is started on it afterwards.
 *
 *  RESTORE-1 All of the backup is read and compared with its checksums before anything is made.
 *  RESTORE-2 Only an empty folder is taken. It has a mark until everything is in it, and no server starts on one that is marked: half an
 *     installation would begin without the other half, and write over what tells it.
 *  RESTORE-3 Streams are made by a broker, which reads what it is given; sequences stay what they were, and so the store fits the journal.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bus, connectBus, restoreStream, type StreamHead } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import { startEmbeddedBroker } from '../broker.ts';
import { lockDataFolder } from '../data-lock.ts';
import { bytesOf, copyFile, emptyFolder, makeEmptyFolder, makeFolderOf, writeNew } from './backup-files.ts';
import { checkBackup, dataFileOf, headFileOf, type Manifest } from './manifest.ts';
import { RESTORING } from './restore-mark.ts';

export interface RestoreOptions {
  readonly folder: string;
  /** Empty, or not there yet. */
  readonly dataDir: string;
  /** Path of a nats-server. */
  readonly binary: string;
  /** Of the release that restores it. */
  readonly version: string;
  readonly log: Log;
}

/** Throws an Error that says why nothing was restored; the folder is empty again then. */
export async function restoreBackup({ folder, dataDir, binary, version, log }: RestoreOptions): Promise<Manifest> {
  const { manifest, files } = await checkBackup(folder, version);
  const wasMade = await makeEmptyFolder(dataDir);
  // Whose it is, should two begin at the same moment.
  await writeNew(join(dataDir, RESTORING), () => Promise.resolve());
  try {
    const lock = lockDataFolder(dataDir, 'penstock admin restore');
    try {
      const known = {};
      for (const path of files.filter((each) => !each.startsWith('broker/'))) {
        await makeFolderOf(join(dataDir, path), known);
        if ((await copyFile(join(folder, path), join(dataDir, path))) === null)
          throw new Error(`${join(folder, path)} is not there any more`);
      }
      await restoreStreams(folder, manifest.streams, { dataDir, binary, log });
    } finally {
      lock.release();
    }
    await rm(join(dataDir, RESTORING));
    return manifest;
  } catch (error) {
    await emptyFolder(dataDir, wasMade);
    throw error;
  }
}

async function restoreStreams(
  folder: string,
  names: readonly string[],
  options: Pick<RestoreOptions, 'dataDir' | 'binary' | 'log'>,
): Promise<void> {
  const broker = await startEmbeddedBroker(options);
  let bus: Bus | undefined;
  try {
    bus = await connectBus({ servers: broker.url, user: broker.user, pass: broker.password, name: 'restore' });
    for (const name of names) {
      const head = JSON.parse(await readFile(join(folder, headFileOf(name)), 'utf8')) as StreamHead;
      await restoreStream(bus, head, bytesOf(join(folder, dataFileOf(name))));
    }
  } finally {
    await bus?.close();
    await broker.stop();
  }
}

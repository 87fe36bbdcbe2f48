/**
 * Copies what one machine's installation keeps, while it runs: the store, the streams of its own broker, objects and keys.
 *
 *  BACKUP-1 Every run that was accepted before it began is in it: the store is copied first, the journal after it, so that the journal
 *     has all that the store does not; and nothing was purged between the two, which is looked at, and made up for by beginning anew.
 *  BACKUP-2 Deliveries are copied before the journal, logs after it: a delivery that counts as processed has its run there, and what a
 *     run says of its log is in the logs.
 *  BACKUP-3 Objects are copied last, wherever they are kept: what a run or a pack of logs names, is there.
 *  BACKUP-4 The manifest, with the checksum of all checksums, is written last: what has none is no backup. What fails leaves nothing.
 */
import { createHash } from 'node:crypto';
import { realpath, rm } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { backup as copyDatabase, DatabaseSync } from 'node:sqlite';
import { type Bus, copyStream, lastingStreams, openLog, streams } from '@penstock/bus';
import { bootMs } from '@penstock/async';
import { openStore, runCollections, RunsRepository } from '@penstock/store';
import {
  bytesAt,
  bytesBelow,
  checkRoom,
  type Copied,
  copyFile,
  emptyFolder,
  filesBelow,
  makeEmptyFolder,
  makeFolderOf,
  settleFile,
  writeLast,
  writeNew,
} from './backup-files.ts';
import {
  dataFileOf,
  headFileOf,
  INCOMPLETE,
  KEY_FILES,
  type Manifest,
  MANIFEST,
  manifestOf,
  OBJECTS,
  STORE,
  SUMS,
} from './manifest.ts';

export interface BackupSettings {
  readonly dataDir: string;
  readonly storePath: string;
  /** Undefined: objects are in the broker or elsewhere. */
  readonly objectsDir: string | undefined;
  readonly partitions: number;
  readonly version: string;
  /** What is not in it. */
  readonly notes: readonly string[];
}

/** Each is a copy of the store: of a journal that is purged so fast no copy would ever fit. */
const TRIES_MAX = 3;
/**
 * Chunks of logs leave `LOGS` five minutes after the store has the pointer to their archive (P34): within this time of the copy of the
 * store, what has no pointer in it has its chunks.
 */
const LOGS_WITHIN_MS = 4 * 60_000;
const LOGS_LATE =
  'It took more than four minutes to copy the logs: those of runs that were archived meanwhile may be missing. Try again when less is going on.';
/** Where the broker keeps objects: `SERVICE_OBJECTS_URL=nats:`. */
const OBJECT_STREAMS = 'OBJ_';
/** How long a copy waits for another's write. */
const LOCK_WAIT_MS = 30_000;
/** All pages in one step: a copy in several begins anew at each write of somebody else. It runs beside this thread, and hinders no writer. */
const PAGES_MAX = 2 ** 31 - 1;

/** `folder` has to be empty, or not there yet. Throws an Error that says why there is no backup. */
export async function makeBackup(folder: string, settings: BackupSettings, bus: Bus): Promise<Manifest> {
  await refuseDataFolder(folder, settings.dataDir);
  const wasMade = await makeEmptyFolder(folder);
  // Whose it is, should two begin at the same moment.
  await writeNew(join(folder, INCOMPLETE), () => Promise.resolve());
  try {
    return await new Backup(folder, settings, bus).make();
  } catch (error) {
    // Half a backup is none, and its room is needed where the disk is full.
    await emptyFolder(folder, wasMade);
    throw error;
  }
}

async function refuseDataFolder(folder: string, dataDir: string): Promise<void> {
  const data = await realpath(dataDir);
  let there = folder;
  let real = await realpath(there).catch(() => null);
  while (real === null && dirname(there) !== there) {
    there = dirname(there);
    real = await realpath(there).catch(() => null);
  }
  if (real === data || real?.startsWith(`${data}${sep}`) === true)
    throw new Error(`the folder ${folder} is within the data folder: name one elsewhere, best on another disk`);
}

class Backup {
  readonly #folder: string;
  readonly #settings: BackupSettings;
  readonly #bus: Bus;
  readonly #begunAt = new Date();
  readonly #files = new Map<string, Copied>();
  /** By the boot clock. */
  #storeCopiedAtMs = 0;

  constructor(folder: string, settings: BackupSettings, bus: Bus) {
    this.#folder = folder;
    this.#settings = settings;
    this.#bus = bus;
  }

  async make(): Promise<Manifest> {
    await checkRoom(this.#folder, await this.#bytesExpected());
    for (const name of KEY_FILES) await this.#copy(join(this.#settings.dataDir, name), name);
    const all = await lastingStreams(this.#bus);
    const objects = all.filter((name) => name.startsWith(OBJECT_STREAMS));
    const later: readonly string[] = [streams.journal, streams.logs, ...objects];
    const others = all.filter((name) => !later.includes(name));
    await this.#storeThenJournal(others);
    await this.#stream(streams.logs);
    const areLogsWhole = bootMs() - this.#storeCopiedAtMs < LOGS_WITHIN_MS;
    await this.#objects();
    for (const name of objects) await this.#stream(name);
    const sums = this.#sums();
    await writeNew(join(this.#folder, SUMS), (append) => append(Buffer.from(sums)));
    const { version, partitions, notes } = this.#settings;
    const manifest = manifestOf({
      version,
      begunAt: this.#begunAt.toISOString(),
      finishedAt: new Date().toISOString(),
      partitions,
      streams: [...others, ...later],
      files: this.#files.size,
      bytes: [...this.#files.values()].reduce((sum, { bytes }) => sum + bytes, 0),
      sums: createHash('sha256').update(sums).digest('hex'),
      notes: areLogsWhole ? notes : [...notes, LOGS_LATE],
    });
    await rm(join(this.#folder, INCOMPLETE));
    await writeLast(this.#folder, MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`);
    return manifest;
  }

  /** The broker's copies are compressed; so much at most. */
  async #bytesExpected(): Promise<number> {
    const { dataDir, storePath, objectsDir } = this.#settings;
    const sizes = await Promise.all([
      bytesAt(storePath),
      bytesAt(`${storePath}-wal`),
      bytesBelow(join(dataDir, 'broker', 'store')),
      ...(objectsDir === undefined ? [] : [bytesBelow(join(objectsDir, 'objects'))]),
    ]);
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** BACKUP-1. */
  async #storeThenJournal(others: readonly string[]): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      await this.#store();
      for (const name of [...others, streams.journal]) await this.#stream(name);
      if (await this.#journalGoesOn()) return;
      if (tries === TRIES_MAX)
        throw new Error(
          'the journal was purged faster than the store could be copied, three times: try again when less is going on',
        );
    }
  }

  async #store(): Promise<void> {
    this.#storeCopiedAtMs = bootMs();
    const target = join(this.#folder, STORE);
    await rm(target, { force: true });
    // Ours alone from the beginning; SQLite fills what is there.
    await writeNew(target, () => Promise.resolve());
    const database = new DatabaseSync(this.#settings.storePath, { readOnly: true, timeout: LOCK_WAIT_MS });
    try {
      await copyDatabase(database, target, { rate: PAGES_MAX });
    } finally {
      database.close();
    }
  }

  /** Whether the log still has the commit of each checkpoint, as the copy of the store has it: then it has all that follows (P8). */
  async #journalGoesOn(): Promise<boolean> {
    const path = join(this.#folder, STORE);
    const copy = await openStore({ kind: 'sqlite', path }, runCollections);
    try {
      const ledger = new RunsRepository(copy);
      for (let partition = 0; partition < this.#settings.partitions; partition++) {
        const checkpoint = await ledger.checkpoint(partition);
        if (checkpoint === null) continue;
        const [first] = await firstOf(openLog(this.#bus, partition).read(checkpoint.sequence));
        if (first?.sequence !== checkpoint.sequence) return false;
      }
      return true;
    } finally {
      // With it its companion files are gone.
      await copy.close();
      this.#files.set(STORE, await settleFile(path));
    }
  }

  async #stream(name: string): Promise<void> {
    const [data, head] = [dataFileOf(name), headFileOf(name)];
    for (const file of [data, head]) await rm(join(this.#folder, file), { force: true });
    await makeFolderOf(join(this.#folder, data), this);
    let described = '';
    const copied = await writeNew(join(this.#folder, data), async (append) => {
      described = JSON.stringify(await copyStream(this.#bus, name, append));
    });
    this.#files.set(data, copied);
    this.#files.set(head, await writeNew(join(this.#folder, head), (append) => append(Buffer.from(described))));
  }

  async #objects(): Promise<void> {
    const { objectsDir } = this.#settings;
    if (objectsDir === undefined) return;
    // What is still coming in is named by nothing yet.
    const whole = join(objectsDir, 'objects');
    for await (const path of filesBelow(whole)) await this.#copy(join(whole, path), join(OBJECTS, 'objects', path));
  }

  /** A file that is gone meanwhile is named by nothing any more. */
  async #copy(from: string, path: string): Promise<void> {
    const target = join(this.#folder, path);
    await makeFolderOf(target, this);
    const copied = await copyFile(from, target);
    if (copied !== null) this.#files.set(path, copied);
  }

  /** As `sha256sum --check` reads it. */
  #sums(): string {
    return [...this.#files].map(([path, { sha256 }]) => `${sha256}  ${path}\n`).join('');
  }
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  for await (const item of items) return [item];
  return [];
}

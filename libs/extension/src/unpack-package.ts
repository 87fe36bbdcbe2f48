/**
 * Writes the files of a package into a folder that is not there yet. They are written beside it and it is renamed when
 * all are there and the hash is the expected one, so the folder is the whole package or is not there.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { PackageRefused } from './errors.ts';
import { readPackage, type PackageFigures } from './read-package.ts';

/** Read-only, also for the owner: nothing that runs is to change what others will run. */
const FILE_MODE = 0o444;
const PROGRAM_MODE = 0o555;
const FOLDER_MODE = 0o555;

export interface UnpackOptions {
  /** SHA-256 that the bytes must have. */
  readonly hash?: string | undefined;
}

/** Throws PackageRefused, and what the stream and the file system throw; nothing is left then. */
export async function unpackPackage(
  bytes: AsyncIterable<Uint8Array>,
  folder: string,
  options: UnpackOptions = {},
): Promise<PackageFigures> {
  const draft = join(dirname(folder), `.${basename(folder)}.${randomUUID()}`);
  await mkdir(draft, { recursive: true, mode: 0o700 });
  try {
    const folders = new Set<string>();
    const figures = await readPackage(bytes, async (entry) => {
      const parent = entry.isFolder ? entry.path : dirname(entry.path);
      if (parent !== '.') await makeFolder(draft, parent, folders);
      if (entry.isFolder) return;
      // `wx`: nothing that is there, whatever it be, is written to.
      await pipeline(entry.chunks, createWriteStream(join(draft, entry.path), { flags: 'wx', mode: 0o600 }));
      await chmod(join(draft, entry.path), entry.isExecutable ? PROGRAM_MODE : FILE_MODE);
    });
    if (options.hash !== undefined && figures.hash !== options.hash)
      throw new PackageRefused('hash', `the package has the SHA-256 ${figures.hash}, not ${options.hash}`);
    // The deepest first: a folder that cannot be written to takes no change of those in it.
    for (const path of [...folders].toSorted((left, right) => right.length - left.length))
      await chmod(join(draft, path), FOLDER_MODE);
    await rename(draft, folder);
    await chmod(folder, FOLDER_MODE);
    return figures;
  } catch (error) {
    await removeFolder(draft);
    throw error;
  }
}

async function makeFolder(root: string, path: string, made: Set<string>): Promise<void> {
  if (made.has(path)) return;
  const parent = dirname(path);
  if (parent !== '.') await makeFolder(root, parent, made);
  await mkdir(join(root, path), { mode: 0o700 });
  made.add(path);
}

/** Removes a folder though nothing in it may be written to. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    await makeWritable(folder);
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700).catch(() => {});
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) await makeWritable(join(folder, entry.name));
  }
}

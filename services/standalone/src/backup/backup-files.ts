/** Files of a backup: copied and made for their owner alone, on the disk before they count, each with its SHA-256. */
import { createHash } from 'node:crypto';
import { chmod, mkdir, open, opendir, readdir, rename, rm, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { makeFolder } from '@penstock/async';
import { systemReason } from '@penstock/errors';

export interface Copied {
  readonly sha256: string;
  readonly bytes: number;
}

const READ_BYTES = 256 * 1024;

/** A new file of mode 0600; `write` is given what appends to it. Rejects where the file is there. */
export async function writeNew(
  path: string,
  write: (append: (bytes: Uint8Array) => Promise<void>) => Promise<void>,
): Promise<Copied> {
  const file = await open(path, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    await write(async (piece) => {
      hash.update(piece);
      bytes += piece.length;
      for (let from = 0; from < piece.length;) from += (await file.write(piece, from)).bytesWritten;
    });
    await file.sync();
    return { sha256: hash.digest('hex'), bytes };
  } finally {
    await file.close();
  }
}

export async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r');
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Null: it is not there any more. */
export async function copyFile(from: string, to: string): Promise<Copied | null> {
  const source = bytesOf(from);
  let first: IteratorResult<Uint8Array>;
  try {
    first = await source.next();
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
  return await writeNew(to, async (append) => {
    if (first.done === true) return;
    await append(first.value);
    for await (const piece of source) await append(piece);
  });
}

export async function hashOf(path: string): Promise<Copied> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of bytesOf(path)) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { sha256: hash.digest('hex'), bytes };
}

/** A file that somebody else has made: private, and on the disk. */
export async function settleFile(path: string): Promise<Copied> {
  await chmod(path, 0o600);
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return await hashOf(path);
}

/** Paths below the folder, in no order; files that go meanwhile may be missing. */
export async function* filesBelow(folder: string, top: string = folder): AsyncGenerator<string> {
  let entries: Awaited<ReturnType<typeof opendir>>;
  try {
    entries = await opendir(folder);
  } catch (error) {
    if (isAbsent(error)) return;
    throw error;
  }
  for await (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path, top);
    else if (entry.isFile()) yield relative(top, path);
  }
}

/** About, for what is written to meanwhile. */
export async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0;
  for await (const path of filesBelow(folder)) bytes += await bytesAt(join(folder, path));
  return bytes;
}

/** 0: there is no such file. */
export async function bytesAt(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

/** Throws an Error that says what is missing. */
export async function checkRoom(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= bytes) return;
  throw new Error(
    `there is not enough room in ${folder}: about ${mebibytes(bytes)} are needed and ${mebibytes(free)} are free`,
  );
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2).toLocaleString('en')} MiB`;
}

/** Whether the folder was made; throws an Error that names it where it holds anything, or cannot be one. */
export async function makeEmptyFolder(folder: string): Promise<boolean> {
  const wasThere = (await stat(folder).catch(() => null)) !== null;
  let entries: string[];
  try {
    await makeFolder(folder);
    entries = await readdir(folder);
  } catch (cause) {
    throw new Error(`the folder ${folder} cannot be made (${systemReason(cause)}): name another one`, { cause });
  }
  if (entries.length > 0) throw new Error(`the folder ${folder} is not empty: name one that is, or is not there yet`);
  return !wasThere;
}

/** What was made in it goes; and the folder too, if it was made for that. */
export async function emptyFolder(folder: string, wasMade: boolean): Promise<void> {
  for (const entry of await readdir(folder)) await rm(join(folder, entry), { recursive: true, force: true });
  if (wasMade) await rmdir(folder);
}

const made = new WeakMap<object, Set<string>>();

/** The folder of the path, made where it is missing; `of` remembers those that are there. */
export async function makeFolderOf(path: string, of: object): Promise<void> {
  const known = made.get(of) ?? new Set<string>();
  made.set(of, known);
  const folder = dirname(path);
  if (known.has(folder)) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  known.add(folder);
}

/** Whole or not there, whatever happens meanwhile. */
export async function writeLast(folder: string, name: string, text: string): Promise<void> {
  const draft = join(folder, `.${name}`);
  await writeNew(draft, (append) => append(Buffer.from(text)));
  await rename(draft, join(folder, name));
  const entry = await open(folder, 'r');
  try {
    await entry.sync();
  } finally {
    await entry.close();
  }
}

function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

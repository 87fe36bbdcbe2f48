/** What a backup says of itself, and whether it is whole: read by whoever restores it. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemReason } from '@penstock/errors';
import { hashOf } from './backup-files.ts';

export const MANIFEST = 'manifest.json';
export const SUMS = 'SHA256SUMS';
/** In the folder while the backup is being made. */
export const INCOMPLETE = 'incomplete';
export const STORE = 'store.sqlite';
/** Below it are the objects, as the folder of the object storage has them. */
export const OBJECTS = 'objects';
/** What development mode makes for itself. */
export const KEY_FILES = ['api-key', 'jwt-secret', 'master-key'] as const;
const FORMAT = 1;
/** A line for each file: a million objects have some hundred megabytes. */
const SUMS_BYTES_MAX = 512 * 1024 ** 2;
const MANIFEST_BYTES_MAX = 1024 ** 2;

/** It is written last. */
export interface Manifest {
  /** Of the backup's own layout. */
  readonly format: typeof FORMAT;
  /** The release that made it. */
  readonly version: string;
  /** When it began and was whole, ISO 8601: every run accepted before the first is in it. */
  readonly begunAt: string;
  readonly finishedAt: string;
  readonly partitions: number;
  readonly streams: readonly string[];
  readonly files: number;
  readonly bytes: number;
  /** Of the file `SHA256SUMS`. */
  readonly sums: string;
  /** What is not in it. */
  readonly notes: readonly string[];
}

export function manifestOf(fields: Omit<Manifest, 'format'>): Manifest {
  return { format: FORMAT, ...fields };
}

export function dataFileOf(stream: string): string {
  return `broker/${stream}.tar.s2`;
}

export function headFileOf(stream: string): string {
  return `broker/${stream}.json`;
}

export interface CheckedBackup {
  readonly manifest: Manifest;
  /** Paths in the folder. */
  readonly files: readonly string[];
}

/** Reads all of it. Throws an Error that says what is wrong with it; `version` is the release that is to restore it. */
export async function checkBackup(folder: string, version: string): Promise<CheckedBackup> {
  const manifest = await readManifest(folder);
  if (manifest.format !== FORMAT)
    throw new Error(
      `the backup in ${folder} has the format ${manifest.format}, and Penstock ${version} reads ${FORMAT} only: restore it with Penstock ${manifest.version}`,
    );
  if (isNewer(manifest.version, version))
    throw new Error(
      `the backup in ${folder} was made by Penstock ${manifest.version}, which is newer than this one (${version}): restore it with that release`,
    );
  const damaged = (what: string): Error =>
    new Error(`the backup in ${folder} is damaged: ${what}. Nothing was restored: use another backup`);
  const text = await bounded(join(folder, SUMS), SUMS_BYTES_MAX).catch((cause: unknown) => {
    throw damaged(`${SUMS} cannot be read (${systemReason(cause)})`);
  });
  if (createHash('sha256').update(text).digest('hex') !== manifest.sums) throw damaged(`${SUMS} was changed`);
  const files: string[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    const [expected, path] = [line.slice(0, 64), line.slice(66)];
    if (!isOurs(path)) throw damaged(`${SUMS} names what no backup has`);
    const { sha256 } = await hashOf(join(folder, path)).catch((cause: unknown) => {
      throw damaged(`${path} cannot be read (${systemReason(cause)})`);
    });
    if (sha256 !== expected) throw damaged(`${path} was changed`);
    files.push(path);
  }
  const wanted = [STORE, ...manifest.streams.flatMap((name) => [dataFileOf(name), headFileOf(name)])];
  const missing = wanted.find((path) => !files.includes(path));
  if (missing !== undefined) throw damaged(`${missing} is missing`);
  return { manifest, files };
}

/** Nothing outside of the folder is read or written, whatever stands in the list. */
function isOurs(path: string): boolean {
  if (path.split('/').some((part) => part === '' || part === '.' || part === '..')) return false;
  return (
    path === STORE ||
    KEY_FILES.some((name) => name === path) ||
    /^broker\/[A-Za-z0-9_-]+\.(tar\.s2|json)$/.test(path) ||
    path.startsWith(`${OBJECTS}/objects/`)
  );
}

async function readManifest(folder: string): Promise<Manifest> {
  try {
    return JSON.parse(await bounded(join(folder, MANIFEST), MANIFEST_BYTES_MAX)) as Manifest;
  } catch (cause) {
    if ((await stat(join(folder, INCOMPLETE)).catch(() => null)) !== null)
      throw new Error(`the backup in ${folder} is not whole: it is still being made, or was cut off`, { cause });
    const reason = cause instanceof SyntaxError ? 'it was changed' : systemReason(cause);
    throw new Error(`${folder} is no backup of Penstock: its ${MANIFEST} cannot be read (${reason})`, { cause });
  }
}

async function bounded(path: string, bytesMax: number): Promise<string> {
  if ((await stat(path)).size > bytesMax) throw new Error('it is larger than any of ours');
  return await readFile(path, 'utf8');
}

/** By its three numbers. */
function isNewer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map((part) => Number.parseInt(part, 10) || 0));
  for (let place = 0; place < 3; place += 1) {
    const difference = (a?.[place] ?? 0) - (b?.[place] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

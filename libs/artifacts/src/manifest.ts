/**
 * The list of the files that a stage has left: what its hash stands for in the run's journal. It is written by a runner and
 * read by strangers to it, so whoever reads one checks it by the same rules as whoever writes one.
 *
 *  MANIFEST-1 A path is relative, of plain names parted by `/`; each stands once, and none is the beginning of another up to a
 *     `/`. What is unpacked by it stays below the folder that it is unpacked in.
 *  MANIFEST-2 There are only files: no folders, links or devices.
 */
import { ArtifactsFailed } from './errors.ts';

export interface KeptFile {
  /** From the working folder. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Of the content, lower-case hex. */
  readonly sha256: string;
  readonly executable: boolean;
}

export const KEPT_FILES_MAX = 10_000;
/** Of a manifest: ten thousand long paths. */
export const MANIFEST_BYTES_MAX = 8 * 1024 * 1024;
const PATH_BYTES_MAX = 1_024;
const NAME_BYTES_MAX = 255;
const SHA256 = /^[0-9a-f]{64}$/;

/** Why a path cannot be one of a kept file; undefined: it can. */
export function pathFault(path: string): string | undefined {
  if (path === '' || Buffer.byteLength(path) > PATH_BYTES_MAX) return `it has not 1 to ${PATH_BYTES_MAX} bytes`;
  // oxlint-disable-next-line no-control-regex -- names with such characters are what is looked for
  if (/[\0-\x1f\x7f\\\ufffd]/.test(path)) return 'it has control characters, or a backslash';
  for (const name of path.split('/')) {
    if (name === '' || name === '.' || name === '..') return `it has the part '${name}'`;
    // A character has three bytes at most, and to count them takes longer than all else here.
    if (name.length * 3 > NAME_BYTES_MAX && Buffer.byteLength(name) > NAME_BYTES_MAX)
      return `a name in it has more than ${NAME_BYTES_MAX} bytes`;
  }
  return undefined;
}

/** The same files always make the same bytes. */
export function encodeManifest(files: readonly KeptFile[]): Buffer {
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return Buffer.from(
    JSON.stringify({
      version: 1,
      files: sorted.map(({ path, sizeBytes, sha256, executable }) => ({ path, sizeBytes, sha256, executable })),
    }),
  );
}

/** @throws ArtifactsFailed where it is none, or has more than a stage may keep. */
export function decodeManifest(bytes: Uint8Array): KeptFile[] {
  if (bytes.length > MANIFEST_BYTES_MAX) throw bad(`it has more than ${MANIFEST_BYTES_MAX} bytes`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw bad('it is not JSON', error);
  }
  const { version, files } = (parsed ?? {}) as { readonly version?: unknown; readonly files?: unknown };
  if (version !== 1 || !Array.isArray(files)) throw bad('it is of another form');
  if (files.length > KEPT_FILES_MAX) throw bad(`it has more than ${KEPT_FILES_MAX} files`);
  const checked = files.map(checkedFile);
  checkTogether(checked);
  return checked;
}

function checkedFile(value: unknown): KeptFile {
  const { path, sizeBytes, sha256, executable } = (value ?? {}) as Record<string, unknown>;
  if (typeof path !== 'string') throw bad('a file has no path');
  const fault = pathFault(path);
  if (fault !== undefined) throw bad(`a path cannot be one: ${fault}`);
  if (typeof sizeBytes !== 'number' || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
    throw bad('a file has no size');
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) throw bad('a file has no SHA-256');
  if (typeof executable !== 'boolean') throw bad('a file does not say whether it is a program');
  return { path, sizeBytes, sha256, executable };
}

/** MANIFEST-1. Paths of many short names have more folders than anybody has time for: each path is looked for once. */
function checkTogether(files: readonly KeptFile[]): void {
  const paths = files.map(({ path }) => path).toSorted();
  for (const [at, path] of paths.entries()) {
    if (paths[at + 1] === path) throw bad('a path stands there twice');
    const below = `${path}/`;
    if (firstNotBefore(paths, below)?.startsWith(below) === true) throw bad('a path is a file and a folder');
  }
}

/** Of texts in their order. */
function firstNotBefore(sorted: readonly string[], text: string): string | undefined {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as string) < text) low = middle + 1;
    else high = middle;
  }
  return sorted[low];
}

function bad(problem: string, cause?: unknown): ArtifactsFailed {
  return new ArtifactsFailed('artifacts', `the list of kept files is not usable: ${problem}`, { cause });
}

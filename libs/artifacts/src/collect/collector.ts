/**
 * A process of its own that reads what a stage has left, with the rights of the stage's user and no others: the runner may be
 * root, and the files are a stranger's. It is asked by lines of JSON, and answers by frames (`frames.ts`).
 *
 * It ends with its parent: at the end of its input.
 */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { KeptFile } from '../manifest.ts';
import { enterFolder, fail, send } from '../reading/child.ts';
import { FRAME_BYTES, type CollectRequest, type Listing, type ReadRequest } from '../reading/frames.ts';
import { Patterns } from '../reading/patterns.ts';
import { findFiles, openFile, WalkTooLarge, type Found } from '../reading/walk.ts';

const READ_BYTES = 1024 * 1024;
const buffer = Buffer.allocUnsafe(READ_BYTES);

let folder = -1;
let files: Found[] = [];

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
for await (const line of lines) {
  if (folder === -1) collect(JSON.parse(line) as CollectRequest);
  else sendFile(JSON.parse(line) as ReadRequest);
}

function collect({ path, user, patterns, filesMax, bytesMax }: CollectRequest): void {
  const entered = enterFolder({ path, user });
  if (entered === undefined) return fail('artifacts', 'the working folder cannot be read any more');
  folder = entered;
  try {
    list(new Patterns(patterns), filesMax, bytesMax);
  } catch (error) {
    if (!(error instanceof WalkTooLarge)) throw error;
    fail('artifacts', error.message);
  }
}

function list(patterns: Patterns, filesMax: number, bytesMax: number): void {
  const { found, leftOut, folders } = findFiles(folder, patterns, filesMax);
  if (found.length > filesMax) return fail('quota', `more than ${filesMax} files match; a stage may keep so many`);
  const kept: KeptFile[] = [];
  const readable: Found[] = [];
  const missed = [...leftOut];
  let bytes = 0;
  for (const each of found) {
    const file = openFile(folder, each.at);
    if (file === undefined) {
      missed.push({ path: each.path, why: 'it cannot be read' });
      continue;
    }
    try {
      const { size, mode } = fstatSync(file);
      if (bytes + size > bytesMax)
        return fail('quota', `the files have more than the ${bytesMax} bytes that may be kept`);
      const { sha256, sizeBytes } = sumOf(file, bytesMax - bytes);
      bytes += sizeBytes;
      if (bytes > bytesMax) return fail('quota', `the files have more than the ${bytesMax} bytes that may be kept`);
      kept.push({ path: each.path, sizeBytes, sha256, executable: (mode & 0o100) !== 0 });
      readable.push(each);
    } finally {
      closeSync(file);
    }
  }
  files = readable;
  const listing: Listing = {
    files: kept,
    leftOut: missed.slice(0, 20),
    leftOutCount: missed.length,
    folders: folders.slice(0, 20),
  };
  const text = Buffer.from(JSON.stringify(listing));
  for (let at = 0; at < text.length; at += FRAME_BYTES) send('list', text.subarray(at, at + FRAME_BYTES));
  send('end');
}

function sumOf(file: number, bytesMax: number): { readonly sha256: string; readonly sizeBytes: number } {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for (;;) {
    const read = readSync(file, buffer, 0, buffer.length, sizeBytes);
    if (read === 0) break;
    hash.update(buffer.subarray(0, read));
    sizeBytes += read;
    // A file that grows while it is read has no end.
    if (sizeBytes > bytesMax) break;
  }
  return { sha256: hash.digest('hex'), sizeBytes };
}

/** The content of a listed file, of the size that it was listed with at most. */
function sendFile({ index, sizeBytes }: ReadRequest): void {
  const found = files[index];
  const file = found === undefined ? undefined : openFile(folder, found.at);
  if (file === undefined) return fail('artifacts', 'it is not there any more');
  try {
    for (let at = 0; at < sizeBytes;) {
      const read = readSync(file, buffer, 0, Math.min(FRAME_BYTES, sizeBytes - at), at);
      if (read === 0) break;
      send('data', buffer.subarray(0, read));
      at += read;
    }
  } finally {
    closeSync(file);
  }
  send('end');
}

/**
 * What a stage has left in its Pod, brought out of it: listed and packed by the tools of its image, in its container and with its
 * rights, once nothing of it runs any more. What comes is a stranger's: only what was asked for is taken, each path once, into a
 * folder that nobody else can reach, and links are made last, so that nothing is ever written through one.
 */
import { createWriteStream } from 'node:fs';
import { chmod, copyFile, mkdir, symlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { plainPath, type LeftPick, type StageLeavings } from '@penstock/executor';
import { extract } from 'tar-stream';
import type { Cluster, ExecSocket, ExecStatus } from '../cluster/cluster.ts';
import { ClusterError, NotBroughtOut } from '../errors.ts';
import { GUARD_FOLDER, STAGE_CONTAINER } from './pod-manifest.ts';

/** Of all names together: two million short ones. */
const LIST_BYTES_MAX = 64 * 1024 ** 2;
/** Of one message to the API server. */
const MESSAGE_BYTES_MAX = 64 * 1024;
const COMPLAINT_CHARACTERS_MAX = 500;
/** Of what is asked for below, which goes in the address of the request; where there is more, all is listed. */
const BELOW_CHARACTERS_MAX = 4_000;
const PERMISSIONS = 0o777;
/** Its owner is to read it here. */
const READABLE = 0o400;
/** As `leftTreeOf` reads it. With no more than what any `find` knows. */
const LIST = [
  'cd "$1" || exit 3',
  'shift',
  '[ $# -gt 0 ] || set -- .',
  'for tool in find readlink tar xargs; do',
  '  command -v $tool >/dev/null || { echo "there is no $tool in the image" >&2; exit 3; }',
  'done',
  'find "$@" -type f -print0 2>/dev/null',
  'printf "\\0"',
  `find "$@" -type l -exec sh -c 'for f do printf "%s\\0%s\\0" "$f" "$(readlink "$f")"; done' sh {} + 2>/dev/null`,
  'printf "\\0"',
  'find "$@" ! -type f ! -type l ! -type d -print0 2>/dev/null',
  'printf "\\0"',
  `find "$@" -type d -exec sh -c 'for d do [ -r "$d" ] && [ -x "$d" ] || printf "%s\\0" "$d"; done' sh {} + 2>/dev/null`,
  ':',
].join('\n');
/** An archive after the other, where there are more names than one command takes. */
const PACK = 'cd "$1" && xargs -0 tar -c -f - 2>/dev/null; :';

interface BringOut {
  readonly cluster: Cluster;
  readonly pod: string;
  readonly leavings: StageLeavings;
  /** Of all files together. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** The paths of files that were asked for and did not come. @throws NotBroughtOut; ClusterError; the signal's reason */
export async function bringOut({ cluster, pod, leavings, bytesMax, signal }: BringOut): Promise<readonly string[]> {
  const { into, pick } = leavings;
  const { files, links, folders } = await picked(pick, await listOf(cluster, pod, leavings, signal), signal);
  await mkdir(into, { mode: 0o700 });
  // Every folder that anything stands in is one before the first link is made.
  for (const each of new Set([...folders, ...[...files, ...links.keys()].map((path) => dirname(path))]))
    await mkdir(join(into, each), { recursive: true });
  const missing = new Set(files);
  if (files.length > 0) await fetch({ cluster, pod, leavings, bytesMax, signal }, missing);
  for (const [each, says] of links) await symlink(says, join(into, each)).catch(unlessThere);
  return [...missing];
}

async function picked(pick: StageLeavings['pick'], list: Buffer, signal: AbortSignal): Promise<LeftPick> {
  try {
    return await pick(list, signal);
  } catch (error) {
    throw new NotBroughtOut(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function listOf(
  cluster: Cluster,
  pod: string,
  { folder, below = [] }: StageLeavings,
  signal: AbortSignal,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  const starts = below.map((path) => `./${path}`);
  const words = starts.join('').length > BELOW_CHARACTERS_MAX ? [] : starts;
  const listing = await run(cluster, pod, [LIST, folder, ...words], signal, (bytes, socket) => {
    length += bytes.length;
    if (length <= LIST_BYTES_MAX) pieces.push(bytes);
    else socket.close();
  });
  await listing.ended.catch((error: unknown) => {
    if (length > LIST_BYTES_MAX) throw new NotBroughtOut('there are too many files in its folder');
    throw error;
  });
  return Buffer.concat(pieces);
}

/** What has come is no longer missing. */
async function fetch({ cluster, pod, leavings, bytesMax, signal }: BringOut, missing: Set<string>): Promise<void> {
  const unpacking = extract();
  const unpacked = unpack(unpacking, leavings.into, bytesMax, missing);
  // It is awaited below, where whatever came first is told.
  unpacked.catch(() => {});
  let isPaused = false;
  const archive = await run(cluster, pod, [PACK, leavings.folder], signal, (bytes, socket) => {
    // What had arrived before the pause comes all the same.
    if (unpacking.destroyed || unpacking.write(bytes) || isPaused) return;
    isPaused = true;
    socket.pause();
    unpacking.once('drain', () => {
      isPaused = false;
      socket.resume();
    });
  });
  unpacking.once('close', () => archive.socket.close());
  const names = Buffer.from([...missing].map((path) => `./${path}\0`).join(''));
  try {
    for (let at = 0; at < names.length; at += MESSAGE_BYTES_MAX)
      await archive.socket.send(names.subarray(at, at + MESSAGE_BYTES_MAX));
    await archive.socket.endInput();
    await archive.ended;
    unpacking.end(undefined);
  } catch (error) {
    // A fault of the unpacking has closed the line.
    if (!unpacking.destroyed) unpacking.destroy(error instanceof Error ? error : new Error(String(error)));
  }
  await unpacked;
}

async function unpack(
  archive: ReturnType<typeof extract>,
  into: string,
  bytesMax: number,
  missing: Set<string>,
): Promise<void> {
  /** With their sizes. */
  const come = new Map<string, number>();
  let left = bytesMax;
  const count = (bytes: number): void => {
    left -= bytes;
    if (left < 0) throw new NotBroughtOut(`they have more than the ${bytesMax} bytes that their runner has room for`);
  };
  for await (const entry of archive) {
    const { name, type, size = 0, mode = 0, mtime, linkname = '' } = entry.header;
    const path = plainPath(name);
    const place = join(into, path);
    if (missing.has(path) && (type === 'file' || type === 'contiguous-file')) {
      count(size);
      await pipeline(entry, createWriteStream(place, { flags: 'wx', mode: 0o600 }));
      come.set(path, size);
    } else if (missing.has(path) && type === 'link' && come.has(plainPath(linkname))) {
      // A further name of a file is a file of its own here.
      const linked = come.get(plainPath(linkname)) ?? 0;
      count(linked);
      come.set(path, linked);
      await copyFile(join(into, plainPath(linkname)), place);
      entry.resume();
    } else {
      entry.resume();
      continue;
    }
    await chmod(place, (mode & PERMISSIONS) | READABLE);
    if (mtime !== undefined) await utimes(place, mtime, mtime);
    missing.delete(path);
  }
}

interface Running {
  readonly socket: ExecSocket;
  /** When the command has. @throws ClusterError; NotBroughtOut where it has failed; the signal's reason */
  readonly ended: Promise<void>;
}

async function run(
  cluster: Cluster,
  pod: string,
  [script, ...words]: readonly [script: string, folder: string, ...below: string[]],
  signal: AbortSignal,
  take: (bytes: Buffer, socket: ExecSocket) => void,
): Promise<Running> {
  signal.throwIfAborted();
  const closed = Promise.withResolvers<ExecStatus | null>();
  const early: Buffer[] = [];
  let socket: ExecSocket | null = null;
  let complaint = '';
  socket = await cluster.exec(pod, STAGE_CONTAINER, [`${GUARD_FOLDER}/sh`, '-c', script, 'leavings', ...words], {
    onStdout: (bytes) => void (socket === null ? early.push(bytes) : take(bytes, socket)),
    onStderr: (bytes) => {
      complaint = (complaint + bytes.toString('utf8')).slice(0, COMPLAINT_CHARACTERS_MAX);
    },
    onClose: (status) => closed.resolve(status),
  });
  const own = socket;
  for (const bytes of early) take(bytes, own);
  const abort = (): void => own.close();
  signal.addEventListener('abort', abort, { once: true });
  const ended = closed.promise.then((status) => {
    signal.removeEventListener('abort', abort);
    signal.throwIfAborted();
    if (status?.status === 'Success') return;
    if (status === null) throw new ClusterError(0, 'the connection to its Pod broke');
    throw new NotBroughtOut(complaint.trim() || (status.message ?? 'no reason was given'));
  });
  ended.catch(() => {});
  return { socket: own, ended };
}

function unlessThere(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
}

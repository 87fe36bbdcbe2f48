/**
 * A workspace at a small commit, written by this process: every file is made anew, so that no stage has a byte in common with
 * another, and belongs to its user from the beginning. The same as `checkout.ts` makes. On a thread of its own: how long a
 * disk takes to make a file is nobody's to say, and the loop has leases to keep meanwhile.
 */
import {
  closeSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs';
import { join } from 'node:path';
import { digestOf } from './pack.ts';
import { configOf } from './skeleton.ts';
import type { CommitEntry, SmallCommit } from './small-commit.ts';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface WriteOptions {
  /** Shown to the stages. */
  readonly url: string;
  /** Empty, or not there. */
  readonly folder: string;
  readonly owner: Owner | undefined;
}

/** What the thread is asked for. */
export interface WriteTask {
  readonly commit: SmallCommit;
  readonly options: WriteOptions;
  /** Shared with the asker: the first of it has bits of `WRITING`. */
  readonly state: Int32Array;
}

export const WRITING = {
  /** By the thread: the folder was empty or not there, and what is in it from now on is the thread's. */
  begun: 1,
  /** By the asker. */
  calledOff: 2,
} as const;

/** What git knows a repository by, and where its pack goes; whatever else a clone has git makes when it needs it. */
const GIT_FOLDERS = ['objects', 'objects/pack', 'refs'];

/** Made where it is not there. Throws where it has something. */
export function emptyFolder(folder: string): void {
  // Undefined: it is there.
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined || readdirSync(folder).length === 0) return;
  throw new Error('a workspace is checked out into an empty folder only');
}

/** Where it throws having begun, what has been written stays for the asker to remove. */
export function writeCheckout({ commit, options, state }: WriteTask): void {
  const { url, folder, owner } = options;
  const makeFolder = (path: string, mode: number): void => {
    mkdirSync(path, { mode });
    if (owner !== undefined) lchownSync(path, owner.uid, owner.gid);
  };
  begin(folder, state);
  const git = join(folder, '.git');
  if (owner !== undefined) lchownSync(folder, owner.uid, owner.gid);
  makeFolder(git, 0o700);
  for (const name of GIT_FOLDERS) makeFolder(join(git, name), 0o700);
  for (const path of commit.folders) makeFolder(join(folder, path), 0o777);
  const indexed: { readonly entry: CommitEntry; readonly stat: BigIntStats }[] = [];
  for (const entry of commit.entries) {
    if ((Atomics.load(state, 0) & WRITING.calledOff) !== 0) throw notWanted();
    indexed.push({ entry, stat: writeEntry(join(folder, entry.path), entry, makeFolder, owner) });
  }
  const { name, pack, index } = commit.pack;
  const own: readonly (readonly [string, string | Uint8Array, number])[] = [
    [`objects/pack/${name}.pack`, pack, 0o444],
    [`objects/pack/${name}.idx`, index, 0o444],
    ['config', configOf({ bare: false, url, sha256: false, partial: false }), 0o600],
    // Nothing before it is here.
    ['shallow', `${commit.id}\n`, 0o600],
    ['index', indexFile(indexed), 0o600],
    // Last: without it git knows no repository here.
    ['HEAD', `${commit.id}\n`, 0o600],
  ];
  for (const [path, content, mode] of own) writeFile(join(git, path), content, mode, owner);
}

function begin(folder: string, state: Int32Array): void {
  emptyFolder(folder);
  if (Atomics.compareExchange(state, 0, 0, WRITING.begun) === 0) return;
  // The asker may be gone. Nothing is lost: it removes an empty folder only.
  rmdirSync(folder);
  throw notWanted();
}

function notWanted(): Error {
  return new Error('the workspace is no longer wanted');
}

function writeEntry(
  path: string,
  { kind, content }: CommitEntry,
  makeFolder: (path: string, mode: number) => void,
  owner: Owner | undefined,
): BigIntStats {
  if (kind === 'file' || kind === 'program') return writeFile(path, content, kind === 'file' ? 0o666 : 0o777, owner);
  if (kind === 'submodule') {
    makeFolder(path, 0o777);
  } else {
    symlinkSync(Buffer.from(content), path);
    if (owner !== undefined) lchownSync(path, owner.uid, owner.gid);
  }
  return lstatSync(path, { bigint: true });
}

function writeFile(path: string, content: string | Uint8Array, mode: number, owner: Owner | undefined): BigIntStats {
  const file = openSync(path, 'wx', mode);
  try {
    writeFileSync(file, content);
    if (owner !== undefined) fchownSync(file, owner.uid, owner.gid);
    return fstatSync(file, { bigint: true });
  } finally {
    closeSync(file);
  }
}

const MODES: Readonly<Record<CommitEntry['kind'], number>> = {
  file: 0o100644,
  program: 0o100755,
  link: 0o120000,
  submodule: 0o160000,
};
const HEAD_BYTES = 62;
const NAME_LENGTH_MAX = 0xfff;
const NS_A_SECOND = 1_000_000_000n;

/** What git compares the files with, in its second version (gitformat-index). */
function indexFile(indexed: readonly { readonly entry: CommitEntry; readonly stat: BigIntStats }[]): Buffer {
  const header = Buffer.alloc(12);
  header.write('DIRC', 'latin1');
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(indexed.length, 8);
  const entries = indexed.map(({ entry, stat }) => {
    const name = Buffer.from(entry.path);
    // Ends in one to eight zeros.
    const bytes = Buffer.alloc(HEAD_BYTES + name.length + 8 - ((HEAD_BYTES + name.length) % 8));
    const numbers = [
      stat.ctimeNs / NS_A_SECOND,
      stat.ctimeNs % NS_A_SECOND,
      stat.mtimeNs / NS_A_SECOND,
      stat.mtimeNs % NS_A_SECOND,
      stat.dev,
      stat.ino,
      BigInt(MODES[entry.kind]),
      stat.uid,
      stat.gid,
      entry.kind === 'submodule' ? 0n : stat.size,
    ];
    for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(Number(number & 0xffffffffn), 4 * index);
    bytes.write(entry.id, 40, 'hex');
    bytes.writeUInt16BE(Math.min(name.length, NAME_LENGTH_MAX), 60);
    name.copy(bytes, HEAD_BYTES);
    return bytes;
  });
  const parts = [header, ...entries];
  return Buffer.concat([...parts, digestOf(...parts)]);
}

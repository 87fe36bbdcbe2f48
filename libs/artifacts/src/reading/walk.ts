/**
 * Finds the files below a folder that patterns match, and opens them, although whoever owns the folder may change it all the
 * while: other stages of the run work in it.
 *
 *  WALK-1 Every folder is entered by its name below a descriptor, and never through a link: nothing is read that does not
 *     stand below the folder, whatever is swapped for a link meanwhile.
 *  WALK-2 A link is taken as the file that it leads to where every step of it stays below; a link that leaves, one to a folder,
 *     a device, a socket or a pipe is not taken.
 */
import { closeSync, constants, fstatSync, opendirSync, openSync, readlinkSync, type Dirent } from 'node:fs';
import { pathFault } from '../manifest.ts';

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** A pipe that takes the place of a file does not hold the walk up. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** As the kernel follows. */
const LINKS_MAX = 40;
const DEPTH_MAX = 256;
/** Looked at in all. */
const ENTRIES_MAX = 2_000_000;

/** What of a path that matches is not taken, and why. */
export interface LeftOut {
  readonly path: string;
  readonly why: string;
}

export interface Found {
  readonly path: string;
  /** Where its content is, after links. */
  readonly at: readonly string[];
}

export class WalkTooLarge extends Error {}

/** Which part of a tree is looked at. */
export interface WalkedPart {
  readonly isExhausted: boolean;
  /** Whether something below this folder can match. */
  leadInto(folder: string): boolean;
}

/** What is no folder, below the descriptor of the one that it is in; `name` is undefined where it is not UTF-8. */
export type Visit = (at: number, entry: Dirent<Buffer>, path: string, name: string | undefined) => void;

interface Patterns extends WalkedPart {
  includes(path: string): boolean;
  name(path: string): boolean;
}

/** In the order of their names. `filesMax`: one more is found at the most. */
export function findFiles(
  folder: number,
  patterns: Patterns,
  filesMax: number,
): { readonly found: Found[]; readonly leftOut: LeftOut[]; readonly folders: string[] } {
  const found: Found[] = [];
  const leftOut: LeftOut[] = [];
  /** Folders that a pattern names as if they were files. */
  const folders: string[] = [];
  const visit: Visit = (_at, entry, path, name) => {
    if (!patterns.includes(path)) return;
    const fault = name === undefined ? 'its name is not UTF-8' : pathFault(path);
    if (fault !== undefined) leftOut.push({ path, why: fault });
    else if (entry.isFile()) found.push({ path, at: path.split('/') });
    else if (entry.isSymbolicLink()) {
      const target = targetOf(folder, path.split('/'));
      if (typeof target === 'string') leftOut.push({ path, why: target });
      else found.push({ path, at: target });
    } else leftOut.push({ path, why: 'it is no file' });
  };
  walkBelow(folder, patterns, {
    visit,
    unreadable: (path) => leftOut.push({ path, why: 'the folder cannot be read' }),
    folder: (path) => {
      if (patterns.name(path)) folders.push(path);
    },
    isEnough: () => found.length > filesMax,
    isWanted: (path) => patterns.includes(path),
    filesMax,
  });
  return { found, leftOut, folders };
}

export interface WalkHandlers {
  readonly visit: Visit;
  readonly unreadable: (path: string) => void;
  readonly folder?: ((path: string) => void) | undefined;
  /** Ends the walk. */
  readonly isEnough: () => boolean;
  /** Of what is no folder; what is not wanted is not visited. Default: everything is. */
  readonly isWanted?: ((path: string) => boolean) | undefined;
  /** Of one folder no more than one beyond these are visited: a folder of a million files is not held in memory. Default: all. */
  readonly filesMax?: number | undefined;
}

/** Everything below the folder that is led into, in the order of its names. */
export function walkBelow(folder: number, part: WalkedPart, handlers: WalkHandlers): void {
  let entries = 0;
  const look = (at: number, entry: Dirent<Buffer>, prefix: string, depth: number): void => {
    const name = entry.name.toString('utf8');
    const path = pathOf(prefix, name);
    const isText = Buffer.compare(Buffer.from(name), entry.name) === 0;
    if (!entry.isDirectory()) return handlers.visit(at, entry, path, isText ? name : undefined);
    handlers.folder?.(path);
    if (isText && depth < DEPTH_MAX && part.leadInto(path)) enter(at, name, path, depth + 1);
  };
  const enter = (at: number, name: string, path: string, depth: number): void => {
    let inner: number;
    try {
      inner = openSync(below(at, name), FOLDER);
    } catch {
      handlers.unreadable(path);
      return;
    }
    try {
      walk(inner, path, depth);
    } finally {
      closeSync(inner);
    }
  };
  const walk = (at: number, prefix: string, depth: number): void => {
    for (const entry of namesOf(at, prefix)) {
      if (part.isExhausted) throw new WalkTooLarge('the patterns take too long to match');
      if (handlers.isEnough()) return;
      look(at, entry, prefix, depth);
    }
  };
  /** In their order. Read one by one, for a stranger says how many there are. */
  const namesOf = (at: number, prefix: string): Dirent<Buffer>[] => {
    const { isWanted, filesMax = Infinity } = handlers;
    const wanted: Dirent<Buffer>[] = [];
    let files = 0;
    // The types know no names that are bytes here.
    const opened = opendirSync(`/proc/self/fd/${at}`, { encoding: 'buffer' as BufferEncoding });
    try {
      for (;;) {
        const entry = opened.readSync() as Dirent<Buffer> | null;
        if (entry === null || files > filesMax) break;
        entries += 1;
        if (entries > ENTRIES_MAX) throw new WalkTooLarge(`the patterns lead to more than ${ENTRIES_MAX} names`);
        if (part.isExhausted) throw new WalkTooLarge('the patterns take too long to match');
        if (isWanted !== undefined && !entry.isDirectory()) {
          const path = pathOf(prefix, entry.name.toString('utf8'));
          if (!isWanted(path)) continue;
          if (entry.isFile() && pathFault(path) === undefined) files += 1;
        }
        wanted.push(entry);
      }
    } finally {
      opened.closeSync();
    }
    return wanted.toSorted((a, b) => Buffer.compare(a.name, b.name));
  };
  walk(folder, '', 1);
  // What was looked at last may be what the patterns were not matched to the end with.
  if (part.isExhausted) throw new WalkTooLarge('the patterns take too long to match');
}

function pathOf(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** A descriptor of the file; undefined where it is none, or not there any more. */
export function openFile(folder: number, at: readonly string[]): number | undefined {
  const parents: number[] = [];
  try {
    let parent = folder;
    for (const name of at.slice(0, -1)) {
      parent = openSync(below(parent, name), FOLDER);
      parents.push(parent);
    }
    const file = openSync(below(parent, at.at(-1) ?? '.'), FILE);
    if (fstatSync(file).isFile()) return file;
    closeSync(file);
    return undefined;
  } catch {
    return undefined;
  } finally {
    for (const parent of parents) closeSync(parent);
  }
}

/** The names that a link leads to in the end, or why it is not taken. */
function targetOf(folder: number, path: readonly string[]): string[] | string {
  const waiting = [...path];
  const reached: string[] = [];
  for (let links = 0; waiting.length > 0;) {
    const name = waiting.shift() ?? '';
    if (name === '' || name === '.') continue;
    if (name === '..') {
      if (reached.pop() === undefined) return 'it is a link that leaves the working folder';
      continue;
    }
    const link = readLink(folder, [...reached, name]);
    if (link === undefined) {
      reached.push(name);
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) return 'it is a link without an end';
    if (link.startsWith('/')) return 'it is a link that leaves the working folder';
    waiting.unshift(...link.split('/'));
  }
  const file = openFile(folder, reached);
  if (file === undefined) return 'it is a link to no file';
  closeSync(file);
  return reached;
}

/** What stands there as a link; undefined where there is none. */
function readLink(folder: number, at: readonly string[]): string | undefined {
  const parents: number[] = [];
  try {
    let parent = folder;
    for (const name of at.slice(0, -1)) {
      parent = openSync(below(parent, name), FOLDER);
      parents.push(parent);
    }
    return readlinkSync(below(parent, at.at(-1) ?? '.'));
  } catch {
    return undefined;
  } finally {
    for (const parent of parents) closeSync(parent);
  }
}

export function below(folder: number, name: string): string {
  return `/proc/self/fd/${folder}/${name}`;
}

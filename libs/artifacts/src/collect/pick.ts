/**
 * Which paths of a tree elsewhere patterns ask for, where the tree can only be listed: so no more than those is brought here, and
 * `collectFiles` finds on the copy what it would have found there. Names and links are a stranger's.
 */
import { ArtifactsFailed } from '../errors.ts';
import { pathFault } from '../manifest.ts';
import { Patterns } from '../reading/patterns.ts';
import { nameFault, NotTakenPaths, type NotTaken } from './not-taken.ts';

export interface ListedTree {
  /** The paths of its files. */
  readonly files: readonly string[];
  /** Where each link leads, as it says. */
  readonly links: ReadonlyMap<string, string>;
  /** Pipes, sockets and devices. */
  readonly others: readonly string[];
  /** Folders that cannot be looked into. */
  readonly shut: readonly string[];
}

interface PickedPaths {
  /** Asked for, or led to by a link that is. */
  readonly files: readonly string[];
  /** Asked for, or on the way to what they lead to. */
  readonly links: readonly string[];
  /** Folders that a pattern names as if they were files. */
  readonly folders: readonly string[];
  /** Asked for; what a link that is taken cannot lead to is seen where it is brought. */
  readonly notTaken: NotTaken;
}

/** As the kernel follows. */
const LINKS_MAX = 40;
/** No file is kept whose path has more. */
const PATH_LENGTH_MAX = 1_024;

/** @throws ArtifactsFailed */
export function pickPaths(patterns: readonly string[], { files, links, others, shut }: ListedTree): PickedPaths {
  const matcher = new Patterns(patterns);
  const isFile = new Set(files);
  const picked = { files: new Set<string>(), links: new Set<string>(), folders: new Set<string>() };
  const notTaken = new NotTakenPaths();
  // By the lengths of what is named, not by the folders that a path has: a stranger's may have thousands.
  const lengths = new Set(patterns.map(({ length }) => length));
  const see = (path: string): void => {
    for (const length of lengths)
      if (path[length] === '/' && matcher.name(path.slice(0, length))) picked.folders.add(path.slice(0, length));
  };
  const isTaken = (path: string): boolean => {
    see(path);
    if (!matcher.includes(path)) return false;
    const fault = nameFault(path);
    if (fault !== undefined) notTaken.add(path, fault);
    return fault === undefined;
  };
  for (const path of files) if (isTaken(path)) picked.files.add(path);
  for (const path of links.keys()) {
    if (!isTaken(path)) continue;
    const way = wayOf(path, links);
    for (const link of way.links) picked.links.add(link);
    if (way.end !== undefined && isFile.has(way.end) && pathFault(way.end) === undefined) picked.files.add(way.end);
  }
  for (const path of others) if (isTaken(path)) notTaken.add(path, 'it is no file');
  for (const path of shut) if (matcher.leadInto(path)) notTaken.add(path, 'the folder cannot be read');
  if (matcher.isExhausted) throw new ArtifactsFailed('artifacts', 'the patterns take too long to match');
  return {
    files: [...picked.files],
    links: [...picked.links],
    folders: [...picked.folders],
    notTaken: notTaken.told(),
  };
}

/** The links that a path leads through, itself among them, and where it ends; undefined: outside of the tree, or nowhere. */
function wayOf(
  path: string,
  links: ReadonlyMap<string, string>,
): { readonly links: readonly string[]; readonly end: string | undefined } {
  const followed: string[] = [];
  const waiting = path.split('/');
  let reached = '';
  const above: string[] = [];
  while (waiting.length > 0) {
    const name = waiting.shift() ?? '';
    if (name === '' || name === '.') continue;
    if (name === '..') {
      const parent = above.pop();
      if (parent === undefined) return { links: followed, end: undefined };
      reached = parent;
      continue;
    }
    const at = reached === '' ? name : `${reached}/${name}`;
    if (at.length > PATH_LENGTH_MAX) return { links: followed, end: undefined };
    const target = links.get(at);
    if (target === undefined) {
      above.push(reached);
      reached = at;
      continue;
    }
    if (pathFault(at) !== undefined || followed.length >= LINKS_MAX) return { links: followed, end: undefined };
    followed.push(at);
    if (target.startsWith('/')) return { links: followed, end: undefined };
    waiting.unshift(...target.split('/'));
  }
  return { links: followed, end: reached };
}

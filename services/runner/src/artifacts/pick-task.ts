/** What is wanted of all that a stage has left, found in its list: what `left-picks.ts` has done on a thread. */
import { ArtifactsFailed, pickCached, pickPaths, type NotTaken } from '@penstock/artifacts';
import { leftTreeOf, type LeftPick, type LeftTree } from '@penstock/executor';

/** `lists`: of patterns, of artifacts or of reports. `cached`: lists of the paths of caches, as far as they are of that root. */
export type WantedOfTree =
  | { readonly lists: readonly (readonly string[])[] }
  | { readonly cached: readonly (readonly string[])[]; readonly root: 'workspace' | 'home' };

export interface PickTask {
  readonly list: Uint8Array;
  readonly wanted: WantedOfTree;
}

export interface Picked extends LeftPick {
  /** By list: what is asked for and not taken. */
  readonly notTaken: readonly NotTaken[];
}

/** Of one list of patterns: one more than may be kept, so that too many are seen. */
const FILES_MAX = 10_001;
/** As many as a cache may have. The runner's own thread takes the answer. */
const NAMES_MAX = 500_000;

const NOTHING = { files: [], links: [], notTaken: { leftOut: [], leftOutCount: 0 } };

/** @throws ArtifactsFailed */
export function pickFrom({ list, wanted }: PickTask): Picked {
  const tree = leftTreeOf(list);
  if ('cached' in wanted) {
    const picks = wanted.cached.map((paths) => pickCached(paths, wanted.root)?.pick(tree) ?? NOTHING);
    return { ...union(picks, tree), folders: [], notTaken: picks.map(({ notTaken }) => notTaken) };
  }
  const picks = wanted.lists.map((patterns) => pickPaths(patterns, tree));
  const bounded = picks.map(({ files, links }) => ({ files: files.slice(0, FILES_MAX), links }));
  return {
    ...union(bounded, tree),
    folders: [...new Set(picks.flatMap(({ folders }) => folders))],
    notTaken: picks.map(({ notTaken }) => notTaken),
  };
}

function union(
  picks: readonly Readonly<Record<'files' | 'links', readonly string[]>>[],
  { links }: LeftTree,
): Omit<LeftPick, 'folders'> {
  const all = (of: 'files' | 'links'): string[] => [...new Set(picks.flatMap((pick) => pick[of]))];
  const [files, wanted] = [all('files'), all('links')];
  if (files.length + wanted.length > NAMES_MAX)
    throw new ArtifactsFailed('quota', `there are more than ${NAMES_MAX} files and links`);
  return { files, links: new Map(wanted.map((path) => [path, links.get(path) ?? ''])) };
}

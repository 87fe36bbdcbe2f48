/**
 * Which paths of a tree elsewhere the paths of caches mean, where the tree can only be listed: so no more than those is brought here, and
 * `packCache` finds on the copy what it would have found there. Names and links are a stranger's.
 */
import type { ListedTree } from '../collect/pick.ts';
import { ArtifactsFailed } from '../errors.ts';
import { pathFault } from '../manifest.ts';
import type { CacheRoot } from './archive.ts';
import { CachedPaths } from './cached-paths.ts';

interface PickedCache {
  /** Below which all of it is; undefined: it may be anywhere. */
  readonly below: readonly string[] | undefined;
  /** @throws ArtifactsFailed */
  pick(tree: ListedTree): { readonly files: readonly string[]; readonly links: readonly string[] };
}

/** `paths`: as a stage names them. Undefined: they mean nothing of this root. */
export function pickCached(paths: readonly string[], root: CacheRoot): PickedCache | undefined {
  const cached = new CachedPaths(paths, root);
  if (cached.isEmpty) return undefined;
  const isMeant = (path: string): boolean => pathFault(path) === undefined && cached.includes(path);
  return {
    below: cached.starts,
    pick: ({ files, links }) => {
      const meant = { files: files.filter(isMeant), links: [...links.keys()].filter(isMeant) };
      if (cached.isExhausted) throw new ArtifactsFailed('artifacts', 'the patterns take too long to match');
      return meant;
    },
  };
}

/**
 * Which paths of a tree elsewhere the paths of caches mean, where the tree can only be listed: so no more than those is brought here, and
 * `packCache` finds on the copy what it would have found there. Names and links are a stranger's.
 */
import { nameFault, NotTakenPaths, type NotTaken } from '../collect/not-taken.ts';
import type { ListedTree } from '../collect/pick.ts';
import { ArtifactsFailed } from '../errors.ts';
import type { CacheRoot } from './archive.ts';
import { CachedPaths } from './cached-paths.ts';

interface PickedCache {
  /** Below which all of it is; undefined: it may be anywhere. */
  readonly below: readonly string[] | undefined;
  /** @throws ArtifactsFailed */
  pick(tree: ListedTree): PickedTree;
}

interface PickedTree {
  readonly files: readonly string[];
  readonly links: readonly string[];
  /** Meant; what is wrong with where a link leads is seen where it is brought. */
  readonly notTaken: NotTaken;
}

/** `paths`: as a stage names them. Undefined: they mean nothing of this root. */
export function pickCached(paths: readonly string[], root: CacheRoot): PickedCache | undefined {
  const cached = new CachedPaths(paths, root);
  if (cached.isEmpty) return undefined;
  return {
    below: cached.starts,
    pick: ({ files, links, others, shut }) => {
      const notTaken = new NotTakenPaths();
      const isTaken = (path: string): boolean => {
        if (!cached.includes(path)) return false;
        const fault = nameFault(path);
        if (fault !== undefined) notTaken.add(path, fault);
        return fault === undefined;
      };
      const taken = { files: files.filter(isTaken), links: [...links.keys()].filter(isTaken) };
      for (const path of others) if (isTaken(path)) notTaken.add(path, 'it is no file');
      for (const path of shut) if (cached.leadInto(path)) notTaken.add(path, 'the folder cannot be read');
      if (cached.isExhausted) throw new ArtifactsFailed('artifacts', 'the patterns take too long to match');
      return { ...taken, notTaken: notTaken.told() };
    },
  };
}

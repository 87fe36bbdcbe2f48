/** Which part of a root the paths of a cache mean: each path itself, and all that is below it. */
import { GlobList } from '@penstock/pipeline/globs';
import type { CacheRoot } from './archive.ts';

interface Meant {
  readonly isOut: boolean;
  /** In front of the first name with a wildcard; the whole path where there is none. */
  readonly prefix: string;
  readonly globs: GlobList | undefined;
}

/** What matching may cost in all: a minute or so. Patterns and names are written by whoever can push. */
const EFFORT_MAX = 200_000_000;
const HOME = '~/';

/** Whether a path, as a stage names it, is told from its home. */
export function isOfHome(path: string): boolean {
  return path.replace(/^!/, '').startsWith(HOME);
}

export class CachedPaths {
  readonly #meant: readonly Meant[];
  readonly #effort = { left: EFFORT_MAX };

  /** `paths`: as a stage names them; those of the other root are not looked at. */
  constructor(paths: readonly string[], root: CacheRoot) {
    this.#meant = paths.flatMap((path) => {
      const plain = path.replace(/^!/, '');
      if (isOfHome(path) !== (root === 'home')) return [];
      return [meantBy(root === 'home' ? plain.slice(HOME.length) : plain, path.startsWith('!'))];
    });
  }

  /** Nothing of this root is meant. */
  get isEmpty(): boolean {
    return this.#meant.every(({ isOut }) => isOut);
  }

  /** Paths below which all of it is; undefined: it may be anywhere. */
  get starts(): readonly string[] | undefined {
    const prefixes = this.#meant.flatMap(({ isOut, prefix }) => (isOut ? [] : [prefix]));
    return prefixes.includes('') ? undefined : [...new Set(prefixes)];
  }

  get isExhausted(): boolean {
    return this.#effort.left <= 0;
  }

  includes(path: string): boolean {
    let isIn = false;
    for (const { isOut, prefix, globs } of this.#meant) {
      if (isOut !== isIn) continue;
      if (globs === undefined ? path === prefix || path.startsWith(`${prefix}/`) : globs.includes(path, this.#effort))
        isIn = !isOut;
    }
    return isIn;
  }

  leadInto(folder: string): boolean {
    return this.#meant.some(
      ({ isOut, prefix }) =>
        !isOut &&
        (prefix === '' || prefix === folder || prefix.startsWith(`${folder}/`) || folder.startsWith(`${prefix}/`)),
    );
  }
}

function meantBy(path: string, isOut: boolean): Meant {
  const plain = path.replace(/\/+$/, '');
  const names = plain.split('/');
  const wild = names.findIndex((name) => /[*?[{\\]/.test(name));
  if (wild === -1) return { isOut, prefix: plain, globs: undefined };
  return { isOut, prefix: names.slice(0, wild).join('/'), globs: new GlobList([plain, `${plain}/**`]) };
}

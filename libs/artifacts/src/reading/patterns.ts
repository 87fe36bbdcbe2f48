/** Which part of a tree patterns can match, so that a walk leaves out the rest: `dist/**` needs no look at `node_modules`. */
import { GlobList } from '@penstock/pipeline/globs';

interface Reach {
  /** The folders in front of the first name with a wildcard. */
  readonly prefix: string;
  /** How many names a path that it matches has at most. */
  readonly depthMax: number;
}

/** What matching may cost in all: a minute or so. Patterns and names are written by whoever can push. */
const EFFORT_MAX = 200_000_000;

export class Patterns {
  readonly #globs: GlobList;
  readonly #reaches: readonly Reach[];
  readonly #named: ReadonlySet<string>;
  readonly #effort = { left: EFFORT_MAX };

  constructor(patterns: readonly string[]) {
    this.#globs = new GlobList(patterns);
    this.#named = new Set(patterns);
    this.#reaches = patterns.filter((pattern) => !pattern.startsWith('!')).map(reachOf);
  }

  /** Whether they may not be matched any further. */
  get isExhausted(): boolean {
    return this.#effort.left <= 0;
  }

  includes(path: string): boolean {
    return this.#globs.includes(path, this.#effort);
  }

  /** Whether one of them is this very path. */
  name(path: string): boolean {
    return this.#named.has(path);
  }

  /** Whether something below this folder can match. */
  leadInto(folder: string): boolean {
    const depth = folder.split('/').length;
    return this.#reaches.some(
      ({ prefix, depthMax }) =>
        depth < depthMax &&
        (prefix === '' || prefix === folder || prefix.startsWith(`${folder}/`) || folder.startsWith(`${prefix}/`)),
    );
  }
}

function reachOf(pattern: string): Reach {
  const names = pattern.split('/');
  const wild = names.findIndex((name) => /[*?[{\\]/.test(name));
  const prefix = names.slice(0, wild === -1 ? names.length - 1 : wild).join('/');
  // A slash in braces parts no names of the pattern.
  const depthMax = pattern.includes('**') || pattern.includes('{') ? Infinity : names.length;
  return { prefix, depthMax };
}

/**
 * Folders of runs with nothing of theirs left in them, kept for later runs of their keys: half of what a short run costs the disk, and what a
 * helper shows of them need not be mounted anew. As many are worth keeping as there are helpers that idle.
 *
 * SPARES-1. No more than `max` of all roots together; of more, the one kept for longest is given back to be removed.
 */
export interface Spare {
  readonly key: string;
  readonly path: string;
  /** Of the folder and what is kept with it as its /tmp. */
  readonly identity: string;
  readonly hasTemporary: boolean;
  /** An empty `shared` is in it. */
  readonly hasShared: boolean;
  readonly changed: LastChanges;
}

/** When each of a run's folders had changed last, by the clock of files, as it was found with nothing in it; NaN: that cannot be told. */
export interface LastChanges {
  /** With `shared` in it, and nothing else. */
  readonly run: number;
  readonly shared: number;
  readonly temporary: number;
}

const SPARES_MAX = 64;

export class Spares {
  readonly #max: number;
  /** Those kept for longest first; of each key the same. */
  readonly #byKey = new Map<string, Spare[]>();
  #count = 0;

  constructor(max: number = SPARES_MAX) {
    this.#max = max;
  }

  /** The one of this key that was kept last; where it lies is `isOurs` to judge. */
  take(key: string, isOurs: (path: string) => boolean): Spare | undefined {
    const own = this.#byKey.get(key);
    const at = own?.findLastIndex(({ path }) => isOurs(path)) ?? -1;
    if (own === undefined || at === -1) return undefined;
    const [spare] = own.splice(at, 1);
    this.#count -= 1;
    if (own.length === 0) this.#byKey.delete(key);
    return spare;
  }

  /** Answers what there is no room for any more. */
  keep(spare: Spare): Spare | undefined {
    const own = this.#byKey.get(spare.key) ?? [];
    own.push(spare);
    // The key used last stands last.
    this.#byKey.delete(spare.key);
    this.#byKey.set(spare.key, own);
    this.#count += 1;
    if (this.#count <= this.#max) return undefined;
    const [oldest] = this.#byKey;
    if (oldest === undefined) return undefined;
    const [key, spares] = oldest;
    this.#count -= 1;
    const given = spares.shift();
    if (spares.length === 0) this.#byKey.delete(key);
    return given;
  }
}

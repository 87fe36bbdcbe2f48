/**
 * Small commits in memory, by mirror and commit.
 *
 * SMALLCOMMITS-1. Together they take at most `bytesMax`; those not asked for longest go first.
 * SMALLCOMMITS-2. What is kept of one mirror is given to those who use that mirror alone: it stands under its name, and that is a
 *     key's own (MIRRORCACHE-3). So are the objects of the last one that was read of it, which the next one is read with.
 * SMALLCOMMITS-3. Callers that want the same one share the reading of it.
 */
import type { Objects } from './objects.ts';
import { readSmallCommit, type KnownObjects, type ReadCommit, type SmallCommit } from './small-commit.ts';

/** Of a commit that is not small, what is remembered. */
const NAME_BYTES = 300;

export class SmallCommits {
  readonly #bytesMax: number;
  readonly #kept = new Map<string, SmallCommit | null>();
  readonly #underWay = new Map<string, Promise<SmallCommit | null>>();
  #bytes = 0;
  /** By mirror: the last commit that was read of it, as long as that is kept. */
  readonly #last = new Map<string, { readonly name: string; readonly objects: KnownObjects }>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Null: it is not small. Rejects where it cannot be read. */
  async of(mirror: string, commit: string, objects: () => Objects): Promise<SmallCommit | null> {
    const name = `${mirror} ${commit}`;
    const known = this.#kept.get(name);
    if (known !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, known);
      return known;
    }
    const underWay = this.#underWay.get(name);
    if (underWay !== undefined) return underWay;
    const reading = readSmallCommit(objects(), commit, this.#last.get(mirror)?.objects)
      .then((found) => this.#keep(mirror, name, found))
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, reading);
    return reading;
  }

  #keep(mirror: string, name: string, found: ReadCommit | null): SmallCommit | null {
    const commit = found?.commit ?? null;
    this.#kept.set(name, commit);
    this.#bytes += bytesOf(commit);
    if (found !== null) this.#last.set(mirror, { name, objects: found.objects });
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#kept.delete(oldest);
      this.#bytes -= bytesOf(kept);
      const of = oldest.slice(0, oldest.lastIndexOf(' '));
      if (this.#last.get(of)?.name === oldest) this.#last.delete(of);
    }
    return commit;
  }
}

function bytesOf(commit: SmallCommit | null): number {
  return NAME_BYTES + (commit?.bytes ?? 0);
}

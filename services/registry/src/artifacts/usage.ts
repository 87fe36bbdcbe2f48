/**
 * How much each key keeps: a document for each list of files that was stored, whether or not a run has come to name it. What no
 * run names goes with the sweep, so that a key is never counted less than what it has.
 */
import { randomInt } from 'node:crypto';
import { machineTime, type Time } from '@penstock/async';
import type { Collection, DocumentOf, DocumentStore } from '@penstock/store';
import { keptSpec } from '../catalogue/collections.ts';

export interface Kept {
  readonly runId: string;
  readonly tenant: string;
  readonly key: string;
  readonly manifest: string;
  readonly bytes: number;
  /** As what all of it counts while no list does, itself included (`weightOf`); 0 in lists of before: as its bytes. */
  readonly weight: number;
  readonly expiresAt: number;
}

interface Sum {
  /** Of what counts. */
  bytes: number;
  /** As what all of it counts that is over and was not swept (`weightOf`). */
  readonly expired: number;
  readonly until: number;
}

const PAGE = 500;
/** A sum is read anew after this. */
const SUM_HOLDS_MS = 10_000;
const SUMS_MAX = 1_000;
const SALT_MAX = 2 ** 47;

type Listed = Pick<DocumentOf<typeof keptSpec>, 'runId' | 'bytes' | 'weight' | 'storedAt' | 'firstAt' | 'expiresAt'>;

export class KeptUsage {
  readonly #kept: Collection<typeof keptSpec>;
  readonly #now: () => number;
  readonly #time: Pick<Time, 'bootNow'>;
  readonly #sums = new Map<string, Sum>();

  constructor(store: DocumentStore, now: () => number, time: Pick<Time, 'bootNow'> = machineTime) {
    this.#time = time;
    this.#kept = store.collection(keptSpec);
    this.#now = now;
  }

  async bytesOf(key: string): Promise<number> {
    const known = this.#sums.get(key);
    if (known !== undefined && known.until > this.#time.bootNow()) return known.bytes;
    return (await this.#read(key)).bytes;
  }

  /** What lists of a key weigh that were stored first since then, by run, also those that are over; read anew. */
  async weightByRun(key: string, since: ReadonlyMap<string, number>): Promise<Map<string, number>> {
    const weights = new Map<string, number>();
    await this.#read(key, (list) => {
      const { runId } = list;
      if (firstAtOf(list) >= (since.get(runId) ?? Infinity))
        weights.set(runId, (weights.get(runId) ?? 0) + weightIn(list));
    });
    return weights;
  }

  /** As last read. */
  expiredOf(key: string): number {
    return this.#sums.get(key)?.expired ?? 0;
  }

  async #read(key: string, look: (list: Listed) => void = () => {}): Promise<Sum> {
    let [bytes, expired] = [0, 0];
    for await (const list of this.#of(key)) {
      if (list.expiresAt > this.#now()) bytes += list.bytes;
      else expired += weightIn(list);
      look(list);
    }
    const sum = { bytes, expired, until: this.#time.bootNow() + SUM_HOLDS_MS };
    this.#sums.delete(key);
    this.#sums.set(key, sum);
    for (const oldest of this.#sums.keys()) {
      if (this.#sums.size <= SUMS_MAX) break;
      this.#sums.delete(oldest);
    }
    return sum;
  }

  async add(kept: Kept): Promise<void> {
    const id = `${kept.runId}|${kept.manifest}`;
    const known = await this.#kept.get(id);
    const storedAt = this.#now();
    const firstAt = known === null ? storedAt : firstAtOf(known);
    const { stale } = await this.#kept.replaceNewer([{ id, ...kept, storedAt, firstAt, salt: randomInt(SALT_MAX) }]);
    const sum = this.#sums.get(kept.key);
    // A list that is sealed again counts already.
    const counted = known !== null && known.expiresAt > storedAt ? known.bytes : 0;
    if (stale.length === 0 && sum !== undefined) sum.bytes += kept.bytes - counted;
  }

  /** Those stored before this time, the oldest first. */
  async *storedBefore(time: number): AsyncGenerator<Kept & { readonly id: string }, void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const page = await this.#kept.list({ limit: PAGE, after });
      for (const each of page) if (each.storedAt < time) yield each;
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }

  async forget({ id, key }: Pick<Kept, 'key'> & { readonly id: string }): Promise<void> {
    await this.#kept.delete(id);
    this.#sums.delete(key);
  }

  async *#of(key: string): AsyncGenerator<Listed, void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const page = await this.#kept.list({ where: { key }, limit: PAGE, after });
      yield* page;
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }
}

function firstAtOf({ firstAt, storedAt }: Pick<Listed, 'firstAt' | 'storedAt'>): number {
  return firstAt === 0 ? storedAt : firstAt;
}

function weightIn({ bytes, weight }: Pick<Kept, 'bytes' | 'weight'>): number {
  return Math.max(weight, bytes);
}

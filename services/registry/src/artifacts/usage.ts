/**
 * How much each key keeps: a document for each list of files that was stored, whether or not a run has come to name it. What no
 * run names goes with the sweep, so that a key is never counted less than what it has.
 */
import { randomInt } from 'node:crypto';
import { machineTime, type Time } from '@penstock/async';
import type { Collection, DocumentStore } from '@penstock/store';
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

const PAGE = 500;
/** A sum is read anew after this. */
const SUM_HOLDS_MS = 10_000;
const SUMS_MAX = 1_000;
const SALT_MAX = 2 ** 47;

export class KeptUsage {
  readonly #kept: Collection<typeof keptSpec>;
  readonly #now: () => number;
  readonly #time: Pick<Time, 'bootNow'>;
  readonly #sums = new Map<string, { bytes: number; readonly until: number }>();

  constructor(store: DocumentStore, now: () => number, time: Pick<Time, 'bootNow'> = machineTime) {
    this.#time = time;
    this.#kept = store.collection(keptSpec);
    this.#now = now;
  }

  async bytesOf(key: string): Promise<number> {
    const known = this.#sums.get(key);
    if (known !== undefined && known.until > this.#time.bootNow()) return known.bytes;
    let bytes = 0;
    for await (const each of this.#countedOf(key)) bytes += each.bytes;
    this.#sums.delete(key);
    this.#sums.set(key, { bytes, until: this.#time.bootNow() + SUM_HOLDS_MS });
    for (const oldest of this.#sums.keys()) {
      if (this.#sums.size <= SUMS_MAX) break;
      this.#sums.delete(oldest);
    }
    return bytes;
  }

  /** What lists of a key that count weigh, by run; read anew. */
  async weightByRun(key: string): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    for await (const { runId, bytes, weight } of this.#countedOf(key))
      sums.set(runId, (sums.get(runId) ?? 0) + Math.max(weight, bytes));
    return sums;
  }

  async add(kept: Kept): Promise<void> {
    const id = `${kept.runId}|${kept.manifest}`;
    const { stale } = await this.#kept.replaceNewer([
      { id, ...kept, storedAt: this.#now(), salt: randomInt(SALT_MAX) },
    ]);
    const sum = this.#sums.get(kept.key);
    if (stale.length === 0 && sum !== undefined) sum.bytes += kept.bytes;
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

  async forget(id: string): Promise<void> {
    await this.#kept.delete(id);
  }

  async *#countedOf(key: string): AsyncGenerator<Pick<Kept, 'runId' | 'bytes' | 'weight'>, void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const page = await this.#kept.list({ where: { key }, limit: PAGE, after });
      for (const each of page) if (each.expiresAt > this.#now()) yield each;
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }
}

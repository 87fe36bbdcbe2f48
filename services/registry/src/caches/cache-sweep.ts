/**
 * Removes archives that no entry stands for, entries that nobody uses any more, and what a key keeps beyond its limit. Run by
 * every registry now and then; several at once do no harm.
 *
 *  CACHESWEEP-1 Only archives older than `olderThanMs` go: an entry follows what was stored once its success is in the store.
 *  CACHESWEEP-2 What is larger than its entries say goes: it would count as what it is not.
 */
import type { ObjectHead, ObjectStore } from '@penstock/object-store';
import type { CacheEntries, CacheEntry } from '@penstock/store';
import { CACHE_PREFIX, partsOfKey } from '../artifacts/contents.ts';
import type { Unsealed } from '../artifacts/unsealed.ts';

export interface CacheSweepParts {
  readonly objects: Pick<ObjectStore, 'list' | 'delete'>;
  readonly entries: CacheEntries;
  readonly unsealed: Pick<Unsealed, 'forget'>;
  readonly remove: (entry: CacheEntry) => Promise<unknown>;
}

export interface SweptCaches {
  readonly entries: number;
  readonly archives: number;
}

const SWEPT_AFTER_MS = 24 * 60 * 60_000;
const UNUSED_MS_MAX = 30 * 24 * 60 * 60_000;
/** Looked at together: what a scope's entries name is read once for all of them. */
const BATCH = 10_000;

export async function sweepCaches(
  parts: CacheSweepParts,
  now: number,
  olderThanMs = SWEPT_AFTER_MS,
): Promise<SweptCaches> {
  const entries = await sweepEntries(parts, now);
  let archives = 0;
  let batch = new Map<string, ObjectHead[]>();
  let count = 0;
  const flush = async (): Promise<void> => {
    for (const [scope, heads] of batch) archives += await sweepScope(parts, scope, heads);
    batch = new Map();
    count = 0;
  };
  for await (const head of parts.objects.list(CACHE_PREFIX)) {
    if (head.storedAt >= now - olderThanMs) continue;
    const { owner: scope } = partsOfKey(head.key);
    const heads = batch.get(scope);
    if (heads === undefined) batch.set(scope, [head]);
    else heads.push(head);
    count += 1;
    if (count >= BATCH) await flush();
  }
  await flush();
  await parts.unsealed.forget(now - olderThanMs, () => true);
  return { entries, archives };
}

async function sweepScope(
  { objects, entries }: CacheSweepParts,
  scope: string,
  heads: readonly ObjectHead[],
): Promise<number> {
  const named = await entries.namedIn(scope);
  let removed = 0;
  for (const { key, size } of heads) {
    if ((named.get(partsOfKey(key).sha256) ?? -1) >= size) continue;
    await objects.delete(key);
    removed += 1;
  }
  return removed;
}

async function sweepEntries({ entries, remove }: CacheSweepParts, now: number): Promise<number> {
  const sums = new Map<string, { bytes: number; limit: number; createdAt: number }>();
  for await (const { owner, bytes, limitBytes, createdAt } of entries.all()) {
    const sum = sums.get(owner) ?? { bytes: 0, limit: Infinity, createdAt: -1 };
    sum.bytes += bytes;
    // What the newest run knew of its tier is nearest to what holds.
    if (createdAt > sum.createdAt) Object.assign(sum, { limit: limitBytes ?? Infinity, createdAt });
    sums.set(owner, sum);
  }
  let removed = 0;
  for await (const entry of entries.all()) {
    const sum = sums.get(entry.owner);
    const isOver = sum !== undefined && sum.bytes > sum.limit;
    if (!isOver && entry.usedAt >= now - UNUSED_MS_MAX) continue;
    await remove(entry);
    if (sum !== undefined) sum.bytes -= entry.bytes;
    removed += 1;
  }
  return removed;
}

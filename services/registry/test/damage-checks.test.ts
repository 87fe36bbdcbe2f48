import type { ObjectHead } from '@penstock/object-store';
import type { CacheEntry } from '@penstock/store';
import { beforeEach, describe, expect, it } from 'vitest';
import { DamageChecks } from '../src/caches/damage-checks.ts';

/** Each reading waits until it is let go. */
const reading: { readonly sha256: string; end(isWhole: boolean): void }[] = [];
const removed: string[] = [];
let heads: Map<string, Partial<ObjectHead>>;
let now: number;
let checks: DamageChecks;

beforeEach(() => {
  reading.length = 0;
  removed.length = 0;
  heads = new Map();
  now = 0;
  checks = new DamageChecks({
    head: async ({ sha256 }) => (heads.get(sha256) ?? { size: 10, storedAt: 1 }) as ObjectHead,
    isWhole: ({ sha256 }) => new Promise((end) => reading.push({ sha256, end })),
    remove: async ({ sha256 }) => removed.push(sha256),
    time: { bootNow: () => now },
  });
});

const entry = (sha256: string, tenant = 't'): CacheEntry =>
  ({ scope: { tenant, repository: 'r', pipeline: '', ref: 'main' }, sha256, bytes: 10 }) as CacheEntry;
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
const shas = (): string[] => reading.map(({ sha256 }) => sha256);

describe('what is said to be damaged', () => {
  it('DAMAGE-1: is read once, however many say so, and not again while it is known to be whole as it is stored', async () => {
    const looks = Array.from({ length: 10 }, () => checks.look(entry('a')));
    await turn();
    expect(shas()).toEqual(['a']);
    reading[0]?.end(true);
    await Promise.all(looks);
    await checks.look(entry('a'));
    expect(reading).toHaveLength(1);
    heads.set('a', { size: 10, storedAt: 2 });
    const anew = checks.look(entry('a'));
    await turn();
    expect(shas()).toEqual(['a', 'a']);
    reading[1]?.end(true);
    await anew;
    now += 11 * 60_000;
    const later = checks.look(entry('a'));
    await turn();
    expect(reading).toHaveLength(3);
    reading[2]?.end(false);
    await later;
    expect(removed).toEqual(['a']);
  });

  it('of another size than it was stored with, or not there at all, goes without being read', async () => {
    heads.set('short', { size: 9, storedAt: 1 });
    await checks.look(entry('short'));
    expect([removed, reading.length]).toEqual([['short'], 0]);
  });

  it("DAMAGE-2: one tenant's are read one at a time, beside another's; beyond a number nothing waits", async () => {
    const looks = Array.from({ length: 30 }, (_, index) => checks.look(entry(`mine ${index}`)));
    await Promise.all(looks.slice(20));
    const theirs = checks.look(entry('theirs', 'u'));
    await turn();
    expect(shas()).toEqual(['mine 0', 'theirs']);
    for (let at = 0; at < reading.length; at += 1) {
      reading[at]?.end(true);
      await turn();
    }
    await Promise.all([...looks, theirs]);
    expect(reading).toHaveLength(21);
    expect(removed).toEqual([]);
  });

  it('that cannot be looked at stays, and is looked at when it is said again', async () => {
    let isAway = true;
    const flaky = new DamageChecks({
      head: async () => ({ size: 10, storedAt: 1 }) as ObjectHead,
      isWhole: async () => {
        if (isAway) throw new Error('away');
        return false;
      },
      remove: async ({ sha256 }) => removed.push(sha256),
      time: { bootNow: () => now },
    });
    await flaky.look(entry('a'));
    expect(removed).toEqual([]);
    isAway = false;
    await flaky.look(entry('a'));
    expect(removed).toEqual(['a']);
  });
});

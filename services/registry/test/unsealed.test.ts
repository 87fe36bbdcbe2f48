/** What is remembered of what a key has stored, where lists come to count all of it (UNSEALED-3). */
import { QuotaExceeded } from '@penstock/errors';
import { beforeEach, expect, it } from 'vitest';
import { Unsealed } from '../src/artifacts/unsealed.ts';

const KIB = 1024;
const MINUTE = 60_000;
/** Sixteen mebibytes of it may lie there. */
const by = { key: 'k', artifactBytes: 1 };

let now: number;
let boot: number;
/** What lists count, by run, with when they were stored. */
let lists: { readonly run: string; readonly bytes: number; readonly at: number }[];
let asked: (readonly string[])[];
let unsealed: Unsealed;

beforeEach(() => {
  now = 1_763_730_000_000;
  boot = 0;
  lists = [];
  asked = [];
  unsealed = new Unsealed({
    now: () => now,
    time: { bootNow: () => boot },
    sealedOf: async (_key, since) => {
      asked.push([...since.keys()]);
      const sealed = new Map<string, number>();
      for (const { run, bytes, at } of lists)
        if (at >= (since.get(run) ?? Infinity)) sealed.set(run, (sealed.get(run) ?? 0) + bytes);
      return sealed;
    },
  });
});

const store = (run: string, bytes = KIB): Promise<void> => unsealed.store(by, run, bytes, async () => {});

async function keep(run: string, bytes = KIB): Promise<void> {
  await store(run, bytes);
  lists.push({ run, bytes, at: now });
}

function later(ms: number): void {
  now += ms;
  boot += ms;
}

it('runs of which a list counts all are forgotten when there are many of them', async () => {
  await store('never kept');
  for (let round = 0; round < 10; round += 1) {
    for (let run = 0; run < 1_000; run += 1) await keep(`run ${round} ${run}`);
    later(11 * MINUTE);
  }
  expect(Math.max(...asked.map((groups) => groups.length))).toBeLessThan(3_000);
  expect(asked.at(-1)).toContain('never kept');
});

it('nothing is forgotten of which something may still be on its way to a list', async () => {
  for (let run = 0; run < 1_001; run += 1) await keep(`run ${run}`);
  later(9 * MINUTE);
  await store('another');
  for (let run = 0; run < 1_001; run += 1) await store(`late ${run}`);
  expect(asked.at(-1)).toContain('run 0');
});

it('what comes of a run after it was forgotten counts, whatever lists counted of it before', async () => {
  await keep('run', 15 * KIB ** 2);
  later(11 * MINUTE);
  await unsealed.forget(now, () => false);
  await store('run', 15 * KIB ** 2);
  await expect(store('run', 2 * KIB ** 2)).rejects.toThrow(QuotaExceeded);
});

it('a sweep looks at no run of which lists count all', async () => {
  await keep('kept');
  await store('never kept');
  later(24 * 60 * MINUTE);
  const looked: string[] = [];
  await unsealed.forget(now, (run) => {
    looked.push(run);
    return true;
  });
  expect(looked).toEqual(['never kept']);
});

it('what is stored while a sweep looks counts, though all from before has come into a list meanwhile', async () => {
  await store('run');
  const at = now;
  later(24 * 60 * MINUTE);
  await unsealed.forget(now, async () => {
    lists.push({ run: 'run', bytes: KIB, at });
    // Too much, so that the lists are asked.
    await expect(store('another', 17 * KIB ** 2)).rejects.toThrow(QuotaExceeded);
    await store('run', 15 * KIB ** 2);
    return true;
  });
  await expect(store('another', 2 * KIB ** 2)).rejects.toThrow(QuotaExceeded);
});

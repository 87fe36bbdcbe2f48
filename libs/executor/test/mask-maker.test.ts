/** Searches for large values, which are made on a thread, and several searches at a time. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeScanner } from '../src/output/mask-maker.ts';
import { needlesOf } from '../src/output/mask-needles.ts';
import { joinedSearch, MaskScanner, type Search } from '../src/output/mask-scanner.ts';
import { Mask } from '../src/output/mask.ts';

const NO_PROGRAM = new URL('./no-such-thread.ts', import.meta.url);
const LARGE = 256 * 1024;

function spansOf(search: Search, text: string): string {
  const covered = Array.from({ length: text.length }, () => '.');
  const starts: number[] = [];
  search.find(Buffer.from(text), (start, end) => {
    starts.push(start);
    covered.fill('x', start, end);
  });
  expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  return covered.join('');
}

describe('a search that is made on a thread', () => {
  it('finds what one that is made here finds', async () => {
    const value = randomBytes(12_000).toString('base64');
    const made = await makeScanner([value, 'short-one']);
    const here = MaskScanner.of(needlesOf([value, 'short-one']));
    const text = `short-one ${value.slice(0, 700)} ${Buffer.from(value).toString('base64').slice(0, 700)} nothing`;
    expect(spansOf(made as Search, text)).toBe(spansOf(here, text));
    expect(spansOf(made as Search, text)).toContain('x'.repeat(600));
  });

  it('leaves the loop to others meanwhile', async () => {
    let turns = 0;
    const turning = setInterval(() => (turns += 1), 1);
    try {
      await makeScanner([randomBytes(LARGE).toString('latin1')]);
    } finally {
      clearInterval(turning);
    }
    expect(turns).toBeGreaterThan(5);
  });

  it('is made here where there is no thread', async () => {
    const value = randomBytes(12_000).toString('base64');
    const made = await makeScanner([value], NO_PROGRAM);
    expect(spansOf(made as Search, value)).toBe('x'.repeat(value.length));
  });

  it('is none where there is nothing to look for', async () => {
    expect(await makeScanner([])).toBeNull();
    expect(await makeScanner(['', ''])).toBeNull();
  });
});

describe('several searches', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 4, maxLength: 9 });
  const needles = fc.array(word, { minLength: 1, maxLength: 5 });

  it('find together what one of all their values finds', () => {
    fc.assert(
      fc.property(
        fc.array(needles, { minLength: 2, maxLength: 4 }),
        fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 60 }),
        (groups, text) => {
          const searchOf = (values: readonly string[]): Search =>
            MaskScanner.of(
              [...new Set(values)].toSorted((a, b) => (a < b ? -1 : 1)).map((value) => Buffer.from(value)),
            );
          const joined = joinedSearch(groups.map(searchOf)) as Search;
          const one = searchOf(groups.flat());
          expect(spansOf(joined, text)).toBe(spansOf(one, text));
          expect(joined.openFrom(Buffer.from(text))).toBe(one.openFrom(Buffer.from(text)));
        },
      ),
    );
  });

  it('mask what was added to a large value, one by one', async () => {
    const value = randomBytes(24_000).toString('base64url');
    const mask = await Mask.of([value]);
    const added = Array.from({ length: 40 }, () => randomBytes(1_000).toString('base64url'));
    for (const one of added) mask.add([one]);
    for (const each of [value, ...added]) expect(mask.text(`<${each}>`)).toBe('<***>');
    expect(mask.text(`${added[0] ?? ''}${value}`)).toBe('***');
    expect(mask.text('nothing of it')).toBe('nothing of it');
  });
});

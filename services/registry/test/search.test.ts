import { describe, expect, it } from 'vitest';
import { SearchIndex } from '../src/search/search-index.ts';
import { extensionKey } from '../src/catalogue/names.ts';
import { PackageBytes } from '../src/catalogue/package-bytes.ts';
import type { ExtensionRecord } from '../src/catalogue/records.ts';

let generation = 0;

function record(extensionId: string, description: string, scope = ''): ExtensionRecord {
  generation += 1;
  return {
    key: extensionKey(scope, extensionId),
    scope,
    extensionId,
    tenant: scope === '' ? 'service' : scope,
    description,
    createdAt: 1,
    updatedAt: 1,
    generation,
    versions: [
      {
        version: '1.0.0',
        packageHash: '0'.repeat(64),
        sizeBytes: 1,
        objectKey: 'x',
        contentId: 'x',
        yanked: false,
        publishedAt: 1,
        signature: null,
      },
    ],
  };
}

function indexOf(records: readonly ExtensionRecord[], downloads: Readonly<Record<string, number>> = {}): SearchIndex {
  const index = new SearchIndex((key) => downloads[key] ?? 0);
  for (const each of records) index.put(each);
  return index;
}

const RECORDS = [
  record('build/node', 'Builds and tests a package with npm'),
  record('build/docker', 'Builds a container image'),
  record('test/junit', 'Reads a JUnit file and prints a summary of the tests'),
  record('deploy/container', 'Rolls an image out to a cluster'),
  record('notify/slack', 'Tells a channel how the run ended'),
];

const found = (
  index: SearchIndex,
  query: string,
  options: { readonly category?: string; readonly limit?: number; readonly tenant?: string } = {},
): string[] =>
  index
    .search({ query, category: options.category, limit: options.limit ?? 20, tenant: options.tenant ?? null })
    .map(({ id }) => id);

describe('a search', () => {
  const index = indexOf(RECORDS);
  it('finds names above descriptions', () => {
    expect(found(index, 'container')).toEqual(['deploy/container', 'build/docker']);
  });
  it('finds by a whole id, and by any part of it', () => {
    expect(found(index, 'build/node')[0]).toBe('build/node');
    expect(found(index, 'build')).toEqual(expect.arrayContaining(['build/node', 'build/docker']));
  });
  it('wants all words, the last one perhaps unfinished', () => {
    expect(found(index, 'builds image')).toEqual(['build/docker']);
    expect(found(index, 'builds ima')).toEqual(['build/docker']);
  });
  it('finds what is near where nothing has the words', () => {
    expect(found(index, 'slak')).toEqual(['notify/slack']);
    expect(found(index, 'contianer')[0]).toBe('deploy/container');
  });
  it('is the same in any case and with any punctuation', () => {
    expect(found(index, '  JUnit!! ')).toEqual(['test/junit']);
  });
  it('keeps to the category and the limit', () => {
    expect(found(index, 'image', { category: 'deploy' })).toEqual(['deploy/container']);
    expect(found(index, 'image', { limit: 1 })).toHaveLength(1);
    expect(found(index, 'image', { category: 'unknown' })).toEqual([]);
  });
  it('of nothing but punctuation is a search for all', () => {
    expect(found(index, ' -- ')).toHaveLength(RECORDS.length);
  });
  it('that finds nothing answers nothing', () => {
    expect(found(index, 'zzzzzz')).toEqual([]);
  });
});

describe('the order', () => {
  it('without words is that of the downloads, then of the ids', () => {
    const index = indexOf(RECORDS, { [extensionKey('', 'test/junit')]: 5, [extensionKey('', 'notify/slack')]: 7 });
    expect(found(index, '')).toEqual(['notify/slack', 'test/junit', 'build/docker', 'build/node', 'deploy/container']);
  });
  it('is the same whatever the order of publication was', () => {
    const many = Array.from({ length: 60 }, (_, number) =>
      record(`utility/tool-${number % 10}${Math.floor(number / 10)}`, 'equal words'),
    );
    for (const query of ['', 'equal', 'utility', 'tool equal']) {
      expect(found(indexOf(many.toReversed()), query)).toEqual(found(indexOf(many), query));
    }
  });
  it('follows new downloads', () => {
    const downloads: Record<string, number> = {};
    const index = indexOf(RECORDS, downloads);
    found(index, '');
    downloads[extensionKey('', 'test/junit')] = 1;
    index.reorder();
    expect(found(index, '')[0]).toBe('test/junit');
  });
});

describe('an entry', () => {
  it('is replaced by a newer one only (SEARCH-1)', () => {
    const old = record('build/node', 'old words');
    const young = record('build/node', 'young words');
    const index = indexOf([young, old]);
    expect(found(index, 'young')).toEqual(['build/node']);
    expect(found(index, 'old')).toEqual([]);
    expect(index.size).toBe(1);
  });
  it('is replaced where it was removed and published again, and not by late news of before that (SEARCH-1)', () => {
    const before = record('build/node', 'old words');
    const again = { ...record('build/node', 'young words'), createdAt: 2, generation: 1 };
    for (const records of [
      [before, again],
      [again, before],
    ]) {
      const index = indexOf(records);
      expect([found(index, 'young'), found(index, 'old')]).toEqual([['build/node'], []]);
      const bytes = new PackageBytes();
      for (const each of records)
        bytes.put({ ...each, versions: each.versions.slice(0, each.generation === 1 ? 0 : 1) });
      expect(bytes.of('service')).toBe(0);
    }
  });
  it('of another scope is neither found nor suggested (SEARCH-2)', () => {
    const index = indexOf([
      ...RECORDS,
      record('build/hidden', 'secret words', 'user/a'),
      record('build/node', 'my own node', 'user/a'),
    ]);
    expect(found(index, 'secret')).toEqual([]);
    expect(found(index, 'secret', { tenant: 'user/b' })).toEqual([]);
    expect(found(index, 'secret', { tenant: 'user/a' })).toEqual(['build/hidden']);
    expect(found(index, 'node', { tenant: 'user/b' })).toEqual(['build/node']);
    expect(index.candidates('build/hiden', 'user/b')).toEqual([]);
    expect(index.candidates('build/hiden', 'user/a')).toEqual(['build/hidden']);
  });
});

describe('what may have been meant', () => {
  const index = indexOf(RECORDS);
  it.each([
    ['test/node', ['build/node']],
    ['build/nod', ['build/node']],
    ['build/dokcer', ['build/docker']],
    ['notify/slack-message', ['notify/slack']],
    ['build/junit-report', ['test/junit']],
    ['build/of-a-cluster', []],
    ['build/zzzzzz', []],
  ])('by %s is %j', (id, candidates) => {
    expect(index.candidates(id, null)).toEqual(candidates);
  });
});

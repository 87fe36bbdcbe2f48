import { expect, it } from 'vitest';
import type { ListedTree } from '../src/collect/pick.ts';
import { pickPaths } from '../src/index.ts';

const nothing = { leftOut: [], leftOutCount: 0 };
const pick = (
  patterns: readonly string[],
  files: readonly string[],
  links: Readonly<Record<string, string>> = {},
  { others = [], shut = [] }: Partial<ListedTree> = {},
) => pickPaths(patterns, { files, links: new Map(Object.entries(links)), others, shut });

it('takes what the patterns ask for, and nothing else', () => {
  expect(pick(['dist/**', '!dist/*.map'], ['dist/a', 'dist/a.map', 'dist/b/c', 'node_modules/x'])).toEqual({
    files: ['dist/a', 'dist/b/c'],
    links: [],
    folders: [],
    notTaken: nothing,
  });
});

it('takes along what a link leads to, and the links on the way', () => {
  const links = { latest: 'releases/now/app', 'releases/now': 'v2' };
  expect(pick(['latest'], ['releases/v1/app', 'releases/v2/app'], links)).toEqual({
    files: ['releases/v2/app'],
    links: ['latest', 'releases/now'],
    folders: [],
    notTaken: nothing,
  });
});

it.each([['/etc/passwd'], ['../../etc/passwd'], ['self'], ['nothing']])(
  'follows no link that leads out, in a circle or nowhere: %s',
  (target) => {
    expect(pick(['self'], ['file'], { self: target })).toMatchObject({
      files: [],
      links: expect.arrayContaining(['self']),
    });
  },
);

it('takes no name that no list of kept files can hold', () => {
  expect(pick(['**'], ['../out', 'a/../b', 'line\nfeed', 'good']).files).toEqual(['good']);
});

it('says of what is asked for and not taken why, in the words that are used of a folder here', () => {
  const files = ['dist/line\nfeed', 'dist/\ufffd', 'dist/good', 'other/line\nfeed'];
  const others = ['dist/pipe', 'dist/not.map', 'other/pipe'];
  const shut = ['dist/shut', 'other/shut'];
  const { notTaken } = pick(['dist/**', '!dist/*.map'], files, { 'dist/\t': 'good' }, { others, shut });
  expect(notTaken).toEqual({
    leftOut: [
      { path: 'dist/line\nfeed', why: 'it has control characters, or a backslash' },
      { path: 'dist/\ufffd', why: 'its name is not UTF-8' },
      { path: 'dist/\t', why: 'it has control characters, or a backslash' },
      { path: 'dist/pipe', why: 'it is no file' },
      { path: 'dist/shut', why: 'the folder cannot be read' },
    ],
    leftOutCount: 5,
  });
});

it('holds no more of what it does not take than is told, however much there is', () => {
  const others = Array.from({ length: 1_000 }, (_none, at) => `pipe-${at}`);
  const { leftOut, leftOutCount } = pick(['**'], [], {}, { others }).notTaken;
  expect([leftOut.length, leftOutCount]).toEqual([20, 1_000]);
});

it('says which folders a pattern names as if they were files', () => {
  expect(pick(['dist'], ['dist/a']).folders).toEqual(['dist']);
});

// Each folder of each path was looked at: that took a minute, and more memory than a runner has.
it('looks at paths of thousands of folders as at any other, as many as a list of them holds', () => {
  const names = '/a'.repeat(2_000);
  const files = Array.from({ length: 16_000 }, (_none, at) => `${String(at).padStart(5, '0')}${names}`);
  const links = Object.fromEntries(Array.from({ length: 2_000 }, (_none, at) => [`link-${at}`, 'a/'.repeat(2_000)]));
  const found = pick(['00007/a/a', 'link-*'], files, links);
  expect(found.folders).toEqual(['00007/a/a']);
  expect([found.files, found.links.length]).toEqual([[], 2_000]);
});

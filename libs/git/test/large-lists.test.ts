/** What grows with a repository is looked at a part at a time. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pathsIn } from '../src/fetch-commit.ts';
import { isPackedRef } from '../src/packed-refs.ts';

describe('a ref in the file of packed refs', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-refs-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const commits = Array.from({ length: 1_000 }, (_, index) => createHash('sha1').update(String(index)).digest('hex'));
  const whole = commits.map((commit) => `refs/penstock/whole/${commit}`);
  const others = [
    'refs/penstock/partial/zz',
    'refs/penstock/whole/0',
    'refs/penstock/whole/zz',
    whole[500]?.slice(0, -1) ?? '',
    `${whole[500]}0`,
    'refs',
  ];

  it.each([1, 3, 1_000])('is found among %s, and no other is', (count) => {
    const file = join(folder, 'packed-refs');
    const git = (args: string[], input = ''): string =>
      execFileSync('git', args, { cwd: folder, input, encoding: 'utf8' });
    git(['init', '-q', '--bare']);
    const commit = git([
      '-c',
      'user.name=n',
      '-c',
      'user.email=e',
      'commit-tree',
      '-m',
      'm',
      git(['mktree']).trim(),
    ]).trim();
    git(['-c', 'user.name=n', '-c', 'user.email=e', 'tag', '-a', '-m', 'm', 'with-its-own-line', commit]);
    const refs = whole.slice(0, count);
    git(['update-ref', '--stdin'], refs.map((ref) => `create ${ref} ${commit}\n`).join(''));
    git(['pack-refs', '--all', '--prune']);
    for (const ref of [...refs, 'refs/tags/with-its-own-line'])
      expect([ref, isPackedRef(file, ref)]).toEqual([ref, true]);
    for (const ref of [...others, ...whole.slice(count)]) expect([ref, isPackedRef(file, ref)]).toEqual([ref, false]);
  });

  it('is found where the file does not say that it is sorted, and none where there is no file', () => {
    const file = join(folder, 'packed-refs');
    expect(isPackedRef(file, 'refs/a')).toBe(false);
    writeFileSync(
      file,
      whole
        .toReversed()
        .map((ref) => `${'0'.repeat(40)} ${ref}\n`)
        .join(''),
    );
    expect(whole.every((ref) => isPackedRef(file, ref))).toBe(true);
    expect(others.some((ref) => isPackedRef(file, ref))).toBe(false);
  });
});

it('a list of a hundred thousand changed paths is taken apart without holding others up', async () => {
  const paths = Array.from({ length: 100_000 }, (_, index) => `src/${index % 7}/é-${index}.ts`);
  let turns = 0;
  let isDone = false;
  const others = (): void => {
    turns += 1;
    if (!isDone) setImmediate(others);
  };
  setImmediate(others);
  expect(await pathsIn(Buffer.from(`${paths.join('\0')}\0`))).toEqual(paths);
  isDone = true;
  expect(turns).toBeGreaterThan(10);
  expect(await pathsIn(Buffer.alloc(0))).toEqual([]);
});

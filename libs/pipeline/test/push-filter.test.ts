import { describe, expect, it } from 'vitest';
import { GlobList, matchesPush } from '../src/index.ts';
import { Glob } from '../src/push/glob.ts';

const branch = (name: string, paths: readonly string[] | null = null) => ({ ref: `refs/heads/${name}`, paths });
const tag = (name: string) => ({ ref: `refs/tags/${name}`, paths: null });
const noTurn = () => Promise.resolve();
const rule = async (on: Parameters<typeof matchesPush>[0], push: Parameters<typeof matchesPush>[1]) => {
  const match = await matchesPush(on, push, noTurn);
  return match.matched ? true : match.rule.replace('push.', '');
};

describe('patterns', () => {
  it.each([
    ['main', 'main', true],
    ['main', 'maintenance', false],
    ['release/*', 'release/1', true],
    ['release/*', 'release/1/2', false],
    ['release/**', 'release/1/2', true],
    ['release/**', 'release', false],
    ['**', 'a/b', true],
    ['**/*.md', 'README.md', true],
    ['**/*.md', 'docs/a/b.md', true],
    ['docs/**/*.md', 'docs/b.md', true],
    ['docs/**/*.md', 'docs/a/c/b.md', true],
    ['**.js', 'src/a.js', true],
    ['*.js', 'src/a.js', false],
    ['v?.[0-9]', 'v1.4', true],
    ['v?.[!0-9]', 'v1.4', false],
    ['{main,dev-*}', 'dev-2', true],
    ['{main,dev-*}', 'other', false],
    ['a\\*b', 'a*b', true],
    ['a\\*b', 'axb', false],
    ['.github/**', '.github/workflows/x', true],
    ['*', '.hidden', true],
    ['$(touch x)', '$(touch x)', true],
    ['', '', true],
  ])('whether %j matches %j is %j', (pattern, text, matches) => {
    expect(new Glob(pattern).matches(text)).toBe(matches);
  });

  it('a pattern full of stars takes time in proportion to both lengths', () => {
    const effort = { left: Infinity };
    const counted = { left: 1_000_000_000 };
    expect(new Glob(`${'*a'.repeat(120)}b`).matches('a'.repeat(1_000), effort)).toBe(false);
    new Glob(`${'*a'.repeat(120)}b`).matches('a'.repeat(1_000), counted);
    expect(1_000_000_000 - counted.left).toBeLessThan(1_000 * 500);
  });

  it('nothing matches any more once the effort is used up, not even in the midst of a name', () => {
    const effort = { left: 1_000 };
    expect(new Glob('**').matches('a'.repeat(10_000), effort)).toBe(false);
    expect(effort.left).toBeGreaterThan(-1_000);
  });

  it('a pattern may have as many possibilities at one place as it has characters', () => {
    const glob = new Glob(`${'{a,}'.repeat(60)}b`);
    expect([`${'a'.repeat(60)}b`, 'b', `${'a'.repeat(61)}b`].map((text) => glob.matches(text))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('the last pattern of a list that fits decides', () => {
    const list = new GlobList(['release/**', '!release/old/**', 'release/old/kept']);
    expect(['release/1', 'release/old/2', 'release/old/kept', 'main'].map((name) => list.includes(name))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});

describe('on.push', () => {
  it('where it is absent or empty, every push is wanted', async () => {
    for (const on of [undefined, {}, { push: {} }])
      for (const push of [branch('x'), tag('v1'), { ref: 'refs/notes/x', paths: null }])
        expect(await rule(on, push)).toBe(true);
  });

  it('only branches given: tags do not match, and the reverse', async () => {
    expect(await rule({ push: { branches: ['main'] } }, tag('main'))).toBe('branches');
    expect(await rule({ push: { branchesIgnore: ['x'] } }, tag('v1'))).toBe('branches');
    expect(await rule({ push: { tags: ['v*'] } }, branch('v1'))).toBe('tags');
    expect(await rule({ push: { tags: ['v*'], branches: ['main'] } }, tag('v1'))).toBe(true);
    expect(await rule({ push: { tags: ['v*'], branches: ['main'] } }, branch('other'))).toBe('branches');
  });

  it('the -ignore forms name the rule that held the push back', async () => {
    expect(await rule({ push: { branchesIgnore: ['wip/**'] } }, branch('wip/a/b'))).toBe('branches-ignore');
    expect(await rule({ push: { tagsIgnore: ['*-rc'] } }, tag('v1-rc'))).toBe('tags-ignore');
    expect(await rule({ push: { pathsIgnore: ['docs/**'] } }, branch('main', ['docs/a', 'docs/b']))).toBe(
      'paths-ignore',
    );
    expect(await rule({ push: { pathsIgnore: ['docs/**'] } }, branch('main', ['docs/a', 'src/b']))).toBe(true);
  });

  it('paths: one changed path that fits is enough, unknown ones fit always, and tags are not held to them', async () => {
    expect(await rule({ push: { paths: ['src/**'] } }, branch('main', ['docs/a', 'src/b']))).toBe(true);
    expect(await rule({ push: { paths: ['src/**'] } }, branch('main', ['docs/a']))).toBe('paths');
    expect(await rule({ push: { paths: ['src/**'] } }, branch('main'))).toBe(true);
    expect(await rule({ push: { paths: ['src/**'] } }, { ref: 'refs/tags/v1', paths: ['docs/a'] })).toBe(true);
    expect(await rule({ push: { paths: ['src/**', '!src/gen/**'] } }, branch('main', ['src/gen/x']))).toBe('paths');
  });

  it('patterns of strangers that take long give others their turn, and what takes too long counts as not known', async () => {
    const patterns = Array.from({ length: 100 }, (_, index) => `${'**a'.repeat(80)}${index}`);
    const names = ['a'.repeat(1_000)];
    let turns = 0;
    const giveTurn = () => Promise.resolve(void (turns += 1));
    for (const push of [branch(names[0] ?? ''), branch('main', names)]) {
      turns = 0;
      const on = push.paths === null ? { push: { branches: patterns } } : { push: { paths: patterns } };
      await matchesPush(on, push, giveTurn);
      expect(turns).toBeGreaterThan(20);
    }
    const many = branch('main', Array.from({ length: 5 }, () => names).flat());
    expect(await rule({ push: { paths: patterns } }, many)).toBe(true);
  });
});

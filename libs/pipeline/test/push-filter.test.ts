import { describe, expect, it } from 'vitest';
import { GlobList, matchesPush } from '../src/index.ts';
import { Glob } from '../src/push/glob.ts';

const branch = (name: string, paths: readonly string[] | null = null) => ({ ref: `refs/heads/${name}`, paths });
const tag = (name: string) => ({ ref: `refs/tags/${name}`, paths: null });
const rule = (match: ReturnType<typeof matchesPush>): string | true =>
  match.matched ? true : match.rule.replace('push.', '');

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
  it('where it is absent or empty, every push is wanted', () => {
    for (const on of [undefined, {}, { push: {} }])
      expect(
        [branch('x'), tag('v1'), { ref: 'refs/notes/x', paths: null }].map((push) => matchesPush(on, push).matched),
      ).toEqual([true, true, true]);
  });

  it('only branches given: tags do not match, and the reverse', () => {
    expect(rule(matchesPush({ push: { branches: ['main'] } }, tag('main')))).toBe('branches');
    expect(rule(matchesPush({ push: { branchesIgnore: ['x'] } }, tag('v1')))).toBe('branches');
    expect(rule(matchesPush({ push: { tags: ['v*'] } }, branch('v1')))).toBe('tags');
    expect(rule(matchesPush({ push: { tags: ['v*'], branches: ['main'] } }, tag('v1')))).toBe(true);
    expect(rule(matchesPush({ push: { tags: ['v*'], branches: ['main'] } }, branch('other')))).toBe('branches');
  });

  it('the -ignore forms name the rule that held the push back', () => {
    expect(rule(matchesPush({ push: { branchesIgnore: ['wip/**'] } }, branch('wip/a/b')))).toBe('branches-ignore');
    expect(rule(matchesPush({ push: { tagsIgnore: ['*-rc'] } }, tag('v1-rc')))).toBe('tags-ignore');
    expect(rule(matchesPush({ push: { pathsIgnore: ['docs/**'] } }, branch('main', ['docs/a', 'docs/b'])))).toBe(
      'paths-ignore',
    );
    expect(rule(matchesPush({ push: { pathsIgnore: ['docs/**'] } }, branch('main', ['docs/a', 'src/b'])))).toBe(true);
  });

  it('paths: one changed path that fits is enough, unknown ones fit always, and tags are not held to them', () => {
    expect(rule(matchesPush({ push: { paths: ['src/**'] } }, branch('main', ['docs/a', 'src/b'])))).toBe(true);
    expect(rule(matchesPush({ push: { paths: ['src/**'] } }, branch('main', ['docs/a'])))).toBe('paths');
    expect(rule(matchesPush({ push: { paths: ['src/**'] } }, branch('main')))).toBe(true);
    expect(rule(matchesPush({ push: { paths: ['src/**'] } }, { ref: 'refs/tags/v1', paths: ['docs/a'] }))).toBe(true);
    expect(rule(matchesPush({ push: { paths: ['src/**', '!src/gen/**'] } }, branch('main', ['src/gen/x'])))).toBe(
      'paths',
    );
  });
});

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderWith, runExtension } from './run-extension.ts';

function git(cwd: string, ...args: string[]): string {
  return execFileSync(
    'git',
    ['-c', 'user.name=T', '-c', 'user.email=t@example.org', '-c', 'init.defaultBranch=main', ...args],
    { cwd, encoding: 'utf8' },
  ).trim();
}

/** Two commits on main, and a tag on the first. */
function repository(): { readonly folder: string; readonly first: string; readonly second: string } {
  const folder = folderWith({ file: 'one' });
  git(folder, 'init', '-q');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-q', '-m', 'The first');
  git(folder, 'tag', 'v1');
  writeFileSync(join(folder, 'file'), 'two');
  git(folder, 'commit', '-qam', 'The second: $(touch hacked) \u001b[31m');
  git(folder, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
  return { folder, first: git(folder, 'rev-parse', 'HEAD~1'), second: git(folder, 'rev-parse', 'HEAD') };
}

describe('utility/checkout', () => {
  it('clones the default branch, one commit deep, into the workspace', async () => {
    const { folder, second } = repository();
    const cwd = folderWith();
    const { code, outputs } = await runExtension('utility/checkout', { repository: `file://${folder}` }, { cwd });
    expect([code, outputs]).toEqual([
      0,
      { commit: second, 'short-commit': second.slice(0, 12), subject: 'The second: $(touch hacked) [31m' },
    ]);
    expect([readFileSync(join(cwd, 'file'), 'utf8'), git(cwd, 'rev-list', '--count', 'HEAD')]).toEqual(['two', '1']);
  });

  it('takes tags and commits, other folders and all of the history', async () => {
    const { folder, first } = repository();
    const cwd = folderWith({ other: 'x' });
    const tag = await runExtension(
      'utility/checkout',
      { repository: `file://${folder}`, ref: 'v1', path: 'a/b' },
      { cwd },
    );
    expect([tag.code, tag.outputs['commit'], readFileSync(join(cwd, 'a/b/file'), 'utf8')]).toEqual([0, first, 'one']);
    const commit = await runExtension(
      'utility/checkout',
      { repository: `file://${folder}`, ref: first, path: 'c', depth: '0' },
      { cwd },
    );
    expect([commit.code, commit.outputs['commit']]).toEqual([0, first]);
  });

  it('says what is there already, where the run has a repository', async () => {
    const { folder, first, second } = repository();
    expect(await runExtension('utility/checkout', {}, { cwd: folder })).toMatchObject({
      code: 0,
      outputs: { commit: second },
    });
    expect(await runExtension('utility/checkout', { ref: 'v1' }, { cwd: folder })).toMatchObject({
      code: 0,
      outputs: { commit: first },
    });
    expect(await runExtension('utility/checkout', {}, { cwd: folderWith() })).toMatchObject({
      code: 1,
      output: "checkout: there is no commit in the workspace, and no 'repository' was given\n",
    });
  });

  it.each([
    [{ repository: 'ext::sh -c "touch hacked"' }, "'repository' is no address of a repository"],
    [{ repository: '--upload-pack=touch hacked' }, "'repository' is no address of a repository"],
    [{ repository: 'file:///x', ref: '--upload-pack=touch hacked' }, "'ref' is no branch, tag or commit"],
    [{ repository: 'file:///x', ref: 'main:refs/heads/other' }, "'ref' is no branch, tag or commit"],
    [{ repository: 'file:///x', path: '../out' }, "'path' must stay within the workspace"],
    [{ repository: 'file:///x', path: '/tmp' }, "'path' must stay within the workspace"],
    [{ repository: 'file:///x', path: 'full' }, "the folder full is not empty: give another 'path'"],
    [{ repository: 'file:///x', depth: '-1' }, "'depth' must be a whole number"],
  ])('refuses %j', async (inputs, message) => {
    const cwd = folderWith({ 'full/file': 'x' });
    expect(await runExtension('utility/checkout', inputs, { cwd })).toEqual({
      code: 1,
      outputs: {},
      output: `checkout: ${message}\n`,
    });
    expect(existsSync(join(cwd, 'hacked'))).toBe(false);
  });
});

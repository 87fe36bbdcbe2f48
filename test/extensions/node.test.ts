import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderWith, runExtension } from './run-extension.ts';

const PACKAGE = JSON.stringify({
  name: 'p',
  version: '3.1.4',
  private: true,
  scripts: { build: "node -e \"require('fs').writeFileSync('built', process.env.CI)\"" },
});
const VERSION = process.versions.node;
// The very node of this test, so that its version is known.
const env = { PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}` };

describe('build/node', () => {
  it('installs and builds, and tells the versions', async () => {
    const cwd = folderWith({ 'package.json': PACKAGE });
    const { code, outputs, output } = await runExtension(
      'build/node',
      { version: VERSION.split('.')[0] ?? '' },
      { cwd, env },
    );
    expect([code, outputs], output).toEqual([0, { 'node-version': VERSION, 'package-version': '3.1.4' }]);
    expect(existsSync(join(cwd, 'built'))).toBe(true);
  });

  it('builds nothing where there is no such script, and installs nothing where its input says so', async () => {
    const cwd = folderWith({ 'package.json': PACKAGE });
    const { code, output } = await runExtension(
      'build/node',
      { 'package-manager': 'none', script: 'constructor' },
      { cwd, env },
    );
    expect([code, output]).toEqual([
      0,
      `node ${VERSION}, installing with none\npackage.json has no script constructor: nothing to build\n`,
    ]);
    expect(existsSync(join(cwd, 'built'))).toBe(false);
  });

  it('a version is compared part by part', async () => {
    const cwd = folderWith({ 'package.json': PACKAGE });
    const wants = async (version: string): Promise<string> =>
      (await runExtension('build/node', { version, 'package-manager': 'none', script: '' }, { cwd, env })).output.split(
        '\n',
      )[0] ?? '';
    const [major = ''] = VERSION.split('.');
    expect(await wants(VERSION)).toContain('installing');
    expect(await wants(major.slice(0, 1))).toBe(`node: this is node ${VERSION}, and ${major.slice(0, 1)} is wanted`);
    expect(await wants('latest')).toBe("node: 'version' must be a version such as 24 or 24.1");
  });

  it('fails where there is no project, or where the build fails', async () => {
    expect(await runExtension('build/node', {}, { cwd: folderWith(), env })).toMatchObject({
      code: 1,
      output: 'node: there is no package.json here: set workdir\n',
    });
    const cwd = folderWith({ 'package.json': JSON.stringify({ name: 'p', scripts: { build: 'exit 7' } }) });
    expect((await runExtension('build/node', { 'package-manager': 'none' }, { cwd, env })).code).not.toBe(0);
  });
});

import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderWith, runExtension } from './run-extension.ts';

// Put together, so that this very file is no finding.
const AWS = `AKIA${'ABCDEFGH'.repeat(2)}`;
const GITHUB = `ghp_${'a1B2c3'.repeat(6)}`;
const KEY = `-----BEGIN RSA ${'PRIVATE'} KEY-----`;

describe('security/secrets-scan', () => {
  it('finds secrets by their rule, and never prints them', async () => {
    const cwd = folderWith({
      'src/a.ts': `one\nconst key = "${AWS}";\n`,
      'deploy.sh': `curl https://bob:${'hunter22'}@example.org\n`,
      'b c.txt': `${GITHUB}\n${KEY}\n`,
      'ok.md': 'https://user:${TOKEN}@example.org AKIASHORT\n',
    });
    const { code, output, outputs } = await runExtension('security/secrets-scan', {}, { cwd });
    expect(output.split('\n').toSorted()).toEqual([
      '',
      '4 findings in 3 files',
      'b c.txt:1: github-token',
      'b c.txt:2: private-key',
      'deploy.sh:1: password-in-url',
      'src/a.ts:2: aws-access-key',
    ]);
    expect([code, outputs]).toEqual([1, { findings: '4', files: '3' }]);
  });

  it('passes clean folders, what is allowed, what git leaves out, links and binary files', async () => {
    const cwd = folderWith({
      'test/fixture.pem': KEY,
      'ignored/x': GITHUB,
      '.gitignore': 'ignored\n',
      '.secrets-allow': '# for tests\ntest/*.pem\n',
      'image.bin': Buffer.concat([Buffer.from([0, 1, 2]), Buffer.from(AWS)]),
      'clean.txt': 'nothing',
    });
    symlinkSync(join(cwd, 'ignored', 'x'), join(cwd, 'link'));
    execFileSync('git', ['init', '-q'], { cwd });
    execFileSync('git', ['add', '-A'], { cwd });
    const { code, output } = await runExtension('security/secrets-scan', {}, { cwd });
    expect([code, output]).toEqual([0, '0 findings in 0 files\n']);
  });

  it('need not fail, looks where its input says, and shows as much as is asked for', async () => {
    const cwd = folderWith({ 'a/x': `${AWS}\n`.repeat(5), 'b/x': AWS });
    const { code, output, outputs } = await runExtension(
      'security/secrets-scan',
      { path: 'a', 'fail-on': 'nothing', show: '1' },
      { cwd },
    );
    expect([code, output, outputs['findings']]).toEqual([
      0,
      'a/x:1: aws-access-key\n… and 4 more\n5 findings in 1 files\n',
      '5',
    ]);
    expect(await runExtension('security/secrets-scan', { path: '/etc' }, { cwd })).toMatchObject({
      code: 1,
      output: "secrets-scan: 'path' must stay within the workspace\n",
    });
  });

  it('runs nothing that stands in a name or a pattern', async () => {
    const cwd = folderWith({ '$(touch hacked).txt': AWS, '.secrets-allow': '$(touch hacked)\n' });
    const { output } = await runExtension('security/secrets-scan', {}, { cwd });
    expect(output).toContain('$(touch hacked).txt:1: aws-access-key');
    expect(execFileSync('ls', ['-A'], { cwd, encoding: 'utf8' })).toBe('$(touch hacked).txt\n.secrets-allow\n');
  });
});

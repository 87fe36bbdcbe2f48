import { describe, expect, it } from 'vitest';
import { renderJob } from '../src/process/job.ts';
import { spawnSync } from 'node:child_process';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const SCRIPT = 'env | LC_ALL=C sort; echo "[$UID]"; set -- $WORDS; echo $#';
type Variables = Readonly<Record<string, string>>;

function said(spec: { readonly env: Variables; readonly inherited?: Variables }): string {
  const commands = [{ script: SCRIPT, bindings: { BOUND: 'to it' } }];
  const { text } = renderJob({ helperKey: 'key', commands, cwd: '/', timeoutMs: 1_000, ...spec }, () => '');
  // As descriptors 5 and 6 a helper has the stage's output.
  const shell = spawnSync('sh', ['-c', 'exec 5>&1 6>&2; eval "$1"', 'sh', text.toString()], { env: {} });
  return `${shell.stdout.toString()}${shell.stderr.toString()}`;
}

describe('what stages inherit', () => {
  it.each<[string, Variables, Variables]>([
    ['other names than its own', { HOME: '/root', A: "it's" }, { B: '2' }],
    ['names of its own, which win', { A: '1', B: '1', PATH }, { A: '2', PATH: `/opt:${PATH}` }],
    ['neither a HOME nor a PATH', { A: '1' }, {}],
    ['nothing', {}, { A: '1' }],
    ['what shells keep for themselves', { UID: '7', PWD: '/nowhere', OLDPWD: '/before', A: '1' }, { A: '2' }],
    ['how words are split', { IFS: ',', WORDS: 'a,b c' }, {}],
  ])('reaches a stage as if it were its own: %s', (_what, inherited, env) => {
    const whole = said({ env: { ...inherited, ...env } });
    expect(whole).toContain('BOUND=to it\n');
    expect(said({ inherited, env })).toBe(whole);
    // Put together once for both.
    expect(said({ inherited, env })).toBe(whole);
  });

  it('is refused where no shell could hold it, as what is its own', () => {
    expect(() => said({ inherited: { 'A-B': '1' }, env: {} })).toThrow('no shell can hold a variable named "A-B"');
    expect(() => said({ inherited: { A: 'x\0' }, env: {} })).toThrow('holds a NUL byte');
  });
});

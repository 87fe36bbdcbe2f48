import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bindingsOf, parsePipeline } from '../src/index.ts';
import type { Command, ExpressionScope } from '../src/index.ts';

/**
 * Command lines around an expression, whose value is a program in one of many languages that makes the file `canary`.
 * Those that are refused are no danger; those that are accepted are run by every shell of the machine, and no canary may be.
 */
const SHELLS = ['sh', 'bash', 'dash', 'ksh', 'zsh', 'busybox'] as const;
const isHere = (shell: string): boolean => spawnSync('sh', ['-c', `command -v ${shell}`]).status === 0;

const PAYLOADS = [
  'touch canary',
  './hit',
  '$(touch canary)',
  '`touch canary`',
  ';touch canary;',
  '\ntouch canary\n',
  '"; touch canary; "',
  'a[$(touch canary)]',
  '-va[$(touch canary)]',
  '-eq',
  '-v',
  'sh',
  '-c',
  '-exec',
  '-Itouch canary',
  '--checkpoint-action=exec=touch canary',
  '--use-compress-program=touch canary',
  '--to-command=touch canary',
  '--compress-program=./hit',
  '--upload-pack=./hit',
  '--receive-pack=./hit',
  '--exec=./hit',
  '-c!touch canary',
  '!touch canary',
  'alias.x=!touch canary',
  'core.pager=./hit',
  'ext::sh -c touch% canary',
  'x@-oProxyCommand=./hit:f',
  ':-oProxyCommand=./hit',
  '1etouch canary',
  's/.*/touch canary/e',
  'e touch canary',
  '-e1etouch canary',
  'BEGIN{system("touch canary")}',
  '{system("touch canary")}',
  '-f/dev/stdin',
  'all:;touch canary',
  '--eval=all:;touch canary',
  'import os;os.system("touch canary")',
  '-cimport os;os.system("touch canary")',
  'system("touch canary")',
  '-esystem("touch canary")',
  'RUN touch canary',
];

/** Programs that take all sorts of things for code; those that a machine lacks are stood in for by ones that run what they are given. */
const WORDS = [
  'echo',
  'printf %s',
  "printf '%d\\n'",
  'cat',
  'tee',
  'tee f',
  'grep -e x',
  'xargs',
  'xargs -n1',
  'xargs sh -c',
  'xargs -I{} sh -c {}',
  'env',
  'env -S',
  'nice',
  'timeout 5',
  'command',
  'exec',
  'setsid',
  'nohup',
  'setpriv',
  'setpriv --reuid=0',
  'flock f',
  'flock f -c',
  'sudo',
  'sh',
  'sh -c',
  'sh -s',
  'bash -c',
  'sh x.sh',
  './x.sh',
  'sh /dev/stdin',
  'python3 -c',
  'python3 -',
  'python3 /dev/stdin',
  'perl -e',
  'perl',
  'make -f -',
  'make -s',
  'make -f',
  'awk',
  'awk -f -',
  "awk '{print}'",
  "awk '{system($0)}'",
  'awk -v x=1',
  'awk \'{print | "sh"}\'',
  'sed',
  'sed -e',
  'sed -f - f',
  "sed 's/a/b/'",
  "sed 's/x/y/e'",
  'sed -n',
  'find .',
  'find . -exec',
  'find . -name',
  'find . -exec sh -c',
  'tar cf out.tar',
  'tar -cf out.tar f',
  'tar --checkpoint=1 -cf out.tar f',
  'tar --checkpoint=1 --checkpoint-action=exec=sh -cf out.tar',
  'tar xf',
  'tar -I',
  'zip out.zip f',
  'sort',
  'sort -S1b f f f',
  'git',
  'git tag',
  'git log',
  'git -c',
  'git config alias.y',
  'git fetch',
  'git clone',
  'git ls-remote',
  'git grep',
  'git commit --allow-empty -m',
  'docker run',
  'docker run img',
  'docker run --rm -e',
  'docker exec -i c',
  'docker exec -i c sh',
  'docker exec -i c cat',
  'docker build -t x .',
  'docker build -',
  'docker tag a',
  'kubectl exec p --',
  'kubectl set image d/a a=b:',
  'jq .',
  'jq --arg v',
  '[',
  'test',
  '[ -n',
  '[ x =',
  '[[ x ==',
  'eval',
  'export X=',
  'X=',
  'X=1',
  'trap',
  'f',
  'g',
  '',
] as const;
const FRAMES = [
  '%',
  '%',
  '%',
  'if %; then :; fi',
  'while read -r line; do %; break; done',
  '{ %; }',
  '( % )',
  'x=$(%)',
  'echo "$(%)"',
  'case x in x) % ;; esac',
  'f() { "$@"; }; %',
  'g() { cat; }; %',
  'for i in 1; do %; done',
  'cat <(%)',
  'function h { %; }; h',
  'true && % || true',
  '! %',
];
const JOINS = [' | ', ' | ', ' |\n', ' |& ', ' && ', '; ', ' > >(', ' | tee >(', ' >f; ', ' | { read -r y; ', ' | ( '];
const ARGUMENTS = [
  '@',
  '"@"',
  "'@'",
  'v@',
  './@',
  '--x=@',
  '-x @',
  '-- @',
  '@ ]',
  '= @ ]',
  'x @',
  '@ x',
  '<<< @',
  '< @',
  '<<E\n@\nE\n',
  '',
];

const stage = fc
  .tuple(fc.constantFrom(...FRAMES), fc.constantFrom(...WORDS), fc.constantFrom(...ARGUMENTS))
  .map(([frame, words, argument]) => frame.replace('%', () => `${words}${words.endsWith('=') ? '' : ' '}${argument}`));
const closing: Readonly<Record<string, string>> = {
  ' > >(': ')',
  ' | tee >(': ')',
  ' | { read -r y; ': '; }',
  ' | ( ': ')',
};
const commandLine = fc
  .tuple(stage, fc.array(fc.tuple(fc.constantFrom(...JOINS), stage), { maxLength: 2 }))
  .map(([first, others]) =>
    others
      .reduceRight((rest, [join, next]) => `${join}${next}${rest}${closing[join] ?? ''}`, '')
      .replace(/^/, () => first),
  );

/** Stands for `docker run` and `docker exec`: the command is run here, as it would be in the container. */
const DOCKER = `#!/bin/sh
verb=$1; shift
case $verb in run|exec) ;; build) sh 2>/dev/null; exit ;; *) exit ;; esac
while :; do case $1 in -e) shift 2 ;; -*) shift ;; *) break ;; esac; done
shift; exec "$@"
`;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-lines-'));
  mkdirSync(join(folder, 'bin'));
  for (const name of ['docker', 'podman']) writeFileSync(join(folder, 'bin', name), DOCKER, { mode: 0o755 });
  writeFileSync(join(folder, 'hit'), '#!/bin/sh\ntouch canary\n', { mode: 0o755 });
  writeFileSync(join(folder, 'x.sh'), '#!/bin/sh\necho "$@"; cat\n', { mode: 0o755 });
  writeFileSync(
    join(folder, 'bin/rsh'),
    '#!/bin/sh\nfor a in "$@"; do case $a in -oProxy*) touch canary;; esac; done\n',
    { mode: 0o755 },
  );
  spawnSync('git', ['init', '-q'], { cwd: folder });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function commandOf(script: string, shell: string): Command | undefined {
  const run = script.replaceAll('@', '${{ webhook.ref }}');
  const result = parsePipeline(JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { run, shell } } }), {
    template: true,
  });
  return result.ok ? result.definition.stages[0]?.commands[0] : undefined;
}

function scopeOf(ref: string): ExpressionScope {
  return {
    stages: {},
    matrix: {},
    env: {},
    run: {},
    pipeline: {},
    webhook: { ref },
    inputs: {},
    success: true,
    failure: false,
  };
}

function hasRun(shell: string, command: Command, value: string): boolean {
  writeFileSync(join(folder, 'f'), 'text\n');
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
    HOME: folder,
    ...bindingsOf(command, scopeOf(value)),
  };
  const args = shell === 'busybox' ? ['sh', '-c', command.script] : ['-c', command.script];
  spawnSync(shell, args, { cwd: folder, env, stdio: 'ignore', timeout: 10_000, killSignal: 'SIGKILL' });
  const ran = existsSync(join(folder, 'canary'));
  rmSync(join(folder, 'canary'), { force: true });
  return ran;
}

/** The shells that a stage can name stand for the one that runs it: busybox is an `ash`. */
const named = (shell: string): string => (shell === 'busybox' ? 'ash' : shell);

describe.each(SHELLS)('of the command lines that are accepted for %s', (shell) => {
  it.skipIf(!isHere(shell))('none runs a value, whatever program stands in it', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(
        commandLine.filter((text) => text.includes('@')),
        fc.shuffledSubarray(PAYLOADS, { minLength: 6, maxLength: 6 }),
        (text, payloads) => {
          const command = commandOf(text, named(shell));
          if (command === undefined) return;
          for (const value of payloads)
            expect({ text, value, ran: hasRun(shell, command, value) }).toEqual({ text, value, ran: false });
        },
      ),
      { numRuns: Number(process.env['PENSTOCK_SHELL_FUZZ_RUNS'] ?? 100) },
    );
  });
});

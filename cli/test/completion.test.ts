/** `penstock completion`: the scripts in the shells that they are for. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/commands.ts';
import { actionsOf, SHELLS } from '../src/command-line/completion.ts';
import { folder, penstock } from './command.ts';

const COMMANDS_ALONE = COMMANDS.map(({ name }) => name).filter((name) => !name.includes(' '));

const specs = await Promise.all(
  COMMANDS.map(async ({ name, summary, load }) => ({ name, summary, spec: (await load()).spec })),
);

/** The script in a file of its own; what is typed is an argument, never a part of a script. */
function shellOf(shell: 'bash' | 'zsh' | 'fish', asked: string, before = ''): (...typed: string[]) => string[] {
  const cwd = folder({ 'here.yaml': '' });
  const script = join(cwd, `script.${shell}`);
  writeFileSync(script, `${before}\n${SHELLS[shell]?.(specs) ?? ''}\n${asked}`);
  return (...typed) =>
    execFileSync(shell, [...(shell === 'zsh' ? ['-f'] : []), script, ...typed], {
      cwd,
      encoding: 'utf8',
      timeout: 60_000,
    })
      .split('\n')
      .map((line) => line.split('\t')[0] ?? '')
      .filter((line) => line !== '');
}

const isHere = (shell: string): boolean => {
  try {
    execFileSync(shell, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
    if (notRun !== undefined) appendFileSync(notRun, `completion in ${shell}: it is not on the PATH\n`);
    return false;
  }
};

/** What `complete` of bash does, without a terminal. */
const ASK_BASH = `COMP_WORDS=(penstock "$@"); COMP_CWORD=$#; _penstock; printf '%s\\n' "\${COMPREPLY[@]}"`;

describe.skipIf(!isHere('bash'))('in bash', () => {
  const complete = shellOf.bind(undefined, 'bash', ASK_BASH);

  it('completes every command', () => {
    expect(complete()('').toSorted()).toEqual(COMMANDS_ALONE.toSorted());
    expect(complete()('gra')).toEqual(['graph']);
  });

  it('completes options of the command that was named, and of one in a group', () => {
    const ask = complete();
    expect(ask('graph', '--')).toEqual(['--json', '--dot', '--mermaid', '--color', '--no-color', '--help']);
    expect(ask('extension', 'in')).toEqual(['init', 'info']);
    expect(ask('extension', 'keygen', '--he')).toEqual(['--help']);
  });

  it('completes what is done with something, once', () => {
    const ask = complete();
    expect(ask('schedule', '')).toEqual(['ls', 'pause', 'resume']);
    expect(ask('schedule', 'pause', '')).toEqual([]);
    expect(ask('completion', 'f')).toEqual(['fish']);
  });

  it('guesses no value', () => {
    expect(complete()('run', '--jobs', '-')).toEqual([]);
  });
});

describe.skipIf(!isHere('fish'))('in fish', () => {
  it('completes commands, actions, options and files', () => {
    const ask = shellOf('fish', 'complete -C "penstock $argv[1]"');
    expect(ask('gra')).toEqual(['graph']);
    expect(ask('schedule ')).toEqual(['ls', 'pause', 'resume']);
    expect(ask('schedule pause ')).toEqual([]);
    expect(ask('extension ini')).toEqual(['init']);
    expect(ask('graph --m')).toEqual(['--mermaid']);
    expect(ask('validate here')).toEqual(['here.yaml']);
  });
});

/** `_arguments` and `_describe` ask a terminal: here they say what they were given. */
const ASK_ZSH = `
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "\${(@P)2}" }
words=(penstock "$@"); CURRENT=$(($# + 1))
_penstock`;

describe.skipIf(!isHere('zsh'))('in zsh', () => {
  it('describes commands, actions, options and files', () => {
    const ask = shellOf('zsh', ASK_ZSH, 'compdef() { }');
    expect(ask('')).toContain('graph:draw what a pipeline file would run');
    expect(ask('schedule', '')).toContain('1:action:(ls pause resume)');
    expect(ask('graph', '')).toContain('*:file:_files');
    expect(ask('extension', 'keygen', '')).toContain('*--help[Show this help]');
  });
});

describe('penstock completion', () => {
  it('prints what is made of the commands', async () => {
    const { code, stdout } = await penstock(['completion', 'fish'], { cwd: folder() });
    expect([code, stdout]).toEqual([0, SHELLS['fish']?.(specs)]);
  });

  it('names the shells that it knows', async () => {
    const { code, stdout, stderr } = await penstock(['completion', 'tcsh'], { cwd: folder() });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('completion bash, completion zsh, completion fish');
  });

  it.each([
    ['ls | pause <ID> | resume <ID>', ['ls', 'pause', 'resume']],
    ['<bash|zsh|fish>', ['bash', 'zsh', 'fish']],
    ['[options] <run>', []],
    ['[options] <category>/<name>@<version>', []],
  ])('finds the actions of %j', (usage, actions) => {
    const [first] = specs;
    if (first === undefined) throw new Error('there are commands');
    expect(actionsOf({ ...first.spec, usage })).toEqual(actions);
  });
});

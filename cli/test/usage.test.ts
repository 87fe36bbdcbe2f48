import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/commands.ts';
import { actionOf } from '../src/command-line/actions.ts';
import { helpOf } from '../src/command-line/help-text.ts';
import { nearestWord } from '../src/command-line/nearest.ts';
import { folder, penstock, pipeline } from './command.ts';

/** Without those of a group, which are shown with it. */
const ALONE = COMMANDS.filter(({ name }) => !name.includes(' '));

describe('the command as a whole', () => {
  it('explains itself without arguments', async () => {
    const { code, stdout, stderr } = await penstock([], { cwd: folder() });
    expect([code, stderr]).toEqual([0, '']);
    const width = Math.max(...ALONE.map(({ name }) => name.length));
    for (const { name, summary } of ALONE) expect(stdout).toContain(`${name.padEnd(width)}  ${summary}`);
  });

  it('names the nearest command, and all of them, for one that it does not know', async () => {
    const { code, stderr, stdout } = await penstock(['triger'], { cwd: folder() });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      `penstock: there is no command 'triger', did you mean 'trigger'?\nThe commands are ${ALONE.map(({ name }) => name).join(', ')}.\nTry 'penstock help'.\n`,
    );
  });

  it('names the nearest option', async () => {
    const { code, stderr } = await penstock(['run', '--jbos', '2'], { cwd: folder() });
    expect(code).toBe(2);
    expect(stderr).toContain("'run' has no option --jbos; did you mean --jobs?");
    expect(stderr).toContain("Try 'penstock help run'.");
  });

  it.each([
    [
      ['runner', '--server', 'http://127.0.0.1:1', '--token', 'rt_a', '--token-file', 'b'],
      "'--token' and '--token-file' both name a runner token: give one",
    ],
    [
      ['runner', '--server', 'http://127.0.0.1:1', '--token', 'rt_a\nrt_b'],
      'the runner token is none: a token is one line of visible characters',
    ],
    [['run', '--jobs'], '--jobs needs a value: --jobs N'],
    [['run', '--jobs', '--json'], '--jobs needs a value: --jobs N'],
    [['run', '--jobs=0'], '--jobs must be a whole number from 1 to 1024'],
    [['run', '--jobs=two'], '--jobs must be a whole number from 1 to 1024'],
    [['run', '--json=yes'], '--json takes no value'],
    [['run', 'a.yaml', 'b.yaml'], "'run' takes no further argument 'b.yaml'"],
    [['logs'], 'logs of which run?'],
    [['logs', 'latest'], "'latest' is no run id"],
    [['trigger', '--server', 'ftp://x'], '--server is not an http address'],
    [['trigger', '--server', 'http://user:word@x'], '--server must not hold a password'],
    [['help', 'me'], "there is no command 'me'"],
    [['\u001b[31mrun'], "there is no command '\\u{1b}[31mrun'"],
  ])('refuses %j in one line and with exit code 2', async (args, message) => {
    const { code, stderr, stdout } = await penstock(args, { cwd: folder(pipeline('  a: {run: "true"}')) });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`penstock: ${message}`);
    expect(stderr).not.toContain('rt_b');
    expect(stderr).not.toContain('    at ');
  });

  it('says its version', async () => {
    expect((await penstock(['--version'], { cwd: folder() })).stdout).toMatch(/^penstock \d+\.\d+\.\d+\n$/);
  });

  it('shows the same help for `--help` as for `help`, whatever else is given', async () => {
    const cwd = folder();
    const [byHelp, byOption] = await Promise.all([
      penstock(['help', 'logs'], { cwd }),
      penstock(['logs', '-h'], { cwd }),
    ]);
    expect(byOption).toEqual(byHelp);
    expect(byHelp.stdout).toContain('Usage: penstock logs [options] <run> [stage]');
  });

  it('has a help text for each command that names its options, examples and exit codes within 100 columns', async () => {
    for (const entry of COMMANDS) {
      const { spec } = await entry.load();
      const text = helpOf(spec);
      expect(spec.name).toBe(entry.name);
      for (const part of [
        `Usage: penstock ${entry.name}`,
        'Options:',
        'Examples:',
        'Exit codes:',
        ...Object.keys(spec.options).map((name) => `--${name}`),
      ])
        expect(text).toContain(part);
      expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    }
  });
});

describe('the pipeline file', () => {
  it('is .pipeline.yaml before .pipeline.yml before .pipeline/pipeline.yaml', async () => {
    const named = (name: string): string => `pipeline: {name: ${name}}\nstages: {a: {run: "true"}}\n`;
    const cwd = folder();
    const check = async (): Promise<unknown> =>
      (JSON.parse((await penstock(['validate', '--json'], { cwd })).stdout) as { pipeline: unknown }).pipeline;
    mkdirSync(join(cwd, '.pipeline'));
    writeFileSync(join(cwd, '.pipeline/pipeline.yaml'), named('third'));
    expect(await check()).toBe('third');
    writeFileSync(join(cwd, '.pipeline.yml'), named('second'));
    expect(await check()).toBe('second');
    writeFileSync(join(cwd, '.pipeline.yaml'), named('first'));
    expect(await check()).toBe('first');
  });

  it('is asked for where there is none', async () => {
    const { code, stderr } = await penstock(['run'], { cwd: folder() });
    expect(code).toBe(2);
    expect(stderr).toContain('there is no .pipeline.yaml, .pipeline.yml, .pipeline/pipeline.yaml in this folder');
  });

  it('that is a folder, or not there, is refused by its name', async () => {
    const cwd = folder();
    expect((await penstock(['run', '.'], { cwd })).stderr).toBe('penstock: . is a folder, not a pipeline file\n');
    expect((await penstock(['run', 'no.yaml'], { cwd })).stderr).toBe('penstock: there is no file no.yaml here\n');
  });

  it('can come from standard input', async () => {
    const { code, stdout } = await penstock(['validate', '-'], {
      cwd: folder(),
      input: 'pipeline: {name: x}\nstages: {a: {run: "true"}, b: {run: "true"}}\n',
    });
    expect([code, stdout]).toEqual([0, "(standard input): pipeline 'x' with 2 stages, no problems.\n"]);
  });
});

describe('validate', () => {
  const bad = 'pipeline: {name: x}\nstages:\n  build: {run: make}\n  test: {run: make test, aftr: build}\n';

  it('points at each problem with line, column and what was meant', async () => {
    const { code, stdout } = await penstock(['validate'], { cwd: folder({ '.pipeline.yaml': bad }) });
    expect(code).toBe(1);
    expect(stdout).toContain('.pipeline.yaml:4:26');
    expect(stdout).toContain('4 |   test: {run: make test, aftr: build}');
    expect(stdout).toContain("did you mean 'after'?");
    expect(stdout).not.toContain('\u001b');
  });

  it('finds nothing to say about this project’s own pipeline', async () => {
    const { code, stdout } = await penstock(['validate', '--json'], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    });
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({ ok: true, file: '.pipeline.yaml', pipeline: 'penstock' }),
    ]);
  });

  it('warns of what is over, and the file is good', async () => {
    const over = 'pipeline: {name: x}\nstages:\n  a: {run: make, quarantine: {until: 2020-01-31}}\n';
    const cwd = folder({ '.pipeline.yaml': over });
    const { code, stderr } = await penstock(['validate'], { cwd });
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('.pipeline.yaml, line 3, column 38: this quarantine was over with 2020-01-31'),
    ]);
    expect(JSON.parse((await penstock(['validate', '--json'], { cwd })).stdout)).toMatchObject({
      ok: true,
      diagnostics: [{ line: 3, column: 38 }],
    });
  });

  it('answers the same as JSON', async () => {
    const { code, stdout } = await penstock(['validate', '--json'], { cwd: folder({ '.pipeline.yaml': bad }) });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      file: '.pipeline.yaml',
      diagnostics: [{ line: 4, column: 26, suggestion: "did you mean 'after'?" }],
    });
  });

  it('colours on wish, and not against NO_COLOR', async () => {
    const cwd = folder({ '.pipeline.yaml': bad });
    expect((await penstock(['validate', '--color'], { cwd })).stdout).toContain('\u001b[');
    expect((await penstock(['validate', '--color', '--no-color'], { cwd })).stdout).not.toContain('\u001b[');
    expect((await penstock(['validate'], { cwd, env: { NO_COLOR: '1' } })).stdout).not.toContain('\u001b[');
  });

  it('`run` refuses the same file with the same excerpt before anything runs', async () => {
    const cwd = folder({ '.pipeline.yaml': `${bad}  first: {run: touch ran}\n` });
    const { code, stderr, stdout } = await penstock(['run'], { cwd });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('.pipeline.yaml:4:26');
    expect((await penstock(['run', 'ran'], { cwd })).stderr).toContain('there is no file ran');
  });
});

it.each([
  ['list', 'ls'],
  ['remove', 'rm'],
  ['delete', 'rm'],
])('takes %s for %s, for every command that has it', (word, own) => {
  expect(actionOf('token', word, { ls: 'ls', rm: 'rm' })).toBe(own);
});

describe('nearestWord', () => {
  it.each([
    ['rn', 'run'],
    ['valdate', 'validate'],
    ['log', 'logs'],
    ['sevre', 'serve'],
    ['hlep', 'help'],
  ])('takes %s for %s', (word, meant) => {
    expect(nearestWord(word, ['run', 'validate', 'serve', 'trigger', 'logs', 'version', 'help'])).toBe(meant);
  });

  it('takes a stranger for nothing', () => {
    expect(nearestWord('frobnicate', ['run', 'validate', 'logs'])).toBeUndefined();
  });
});

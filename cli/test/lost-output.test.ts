/** What was asked for and could not be written is no success. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, lstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { folder, pipeline, start } from './command.ts';
import { answering, RUN_ID } from './fake-server.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

describe.skipIf(!existsSync('/dev/full'))('a disk that is full', () => {
  it.each([
    ['a command that only prints', ['version']],
    ['a run', ['run']],
  ])('is told, and ends with 1: %s', (_what, args) => {
    const { status, stderr } = spawnSync('sh', ['-c', 'exec "$0" "$@" > /dev/full', process.execPath, MAIN, ...args], {
      cwd: folder(pipeline('  a: {run: echo x}')),
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('penstock: the output could not be written whole: the disk is full\n'),
    ]);
  });
});

describe.skipIf(process.platform !== 'linux')('a folder where the file system makes none', () => {
  it('is refused: nothing goes on looking for one', async () => {
    const init = await start(['extension', 'init', 'utility/hello', '/proc/penstock/hello'], { cwd: folder() }).ended;
    expect([init.code, init.stderr]).toEqual([2, expect.stringContaining('cannot write to /proc/penstock/hello')]);
    const { env } = await answering({
      run: { id: RUN_ID, status: 'SUCCESS', stages: [{ name: 'build' }] },
      artifacts: [],
    });
    const fetched = await start(['artifacts', RUN_ID, '--download', '/proc/penstock/out'], { cwd: folder(), env })
      .ended;
    expect([fetched.code, fetched.stderr]).toEqual([1, expect.stringContaining('cannot be written to /proc/penstock')]);
  });
});

it('a run that has no place for a temporary folder says which variable names one', async () => {
  const cwd = folder(pipeline('  a: {run: echo x}'));
  const { code, stdout, stderr } = await start(['run'], { cwd, env: { TMPDIR: join(cwd, 'gone') } }).ended;
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(
    /^penstock: there is no folder for the run's own files in .*\/gone \(.*\): let TMPDIR name one/u,
  );
});

const WORKFLOW = 'on: push\njobs: {a: {steps: [{run: x}]}}\n';

describe('a file that the disk does not take whole', () => {
  it.each([
    ['is not there', ['extension', 'keygen', 'made'], 'made'],
    ['is not there', ['migrate', '--from', 'github', '--output', 'made', 'ci.yml'], 'made'],
    ['is the one that was there', ['lock', '--update'], '.pipeline.lock'],
  ])('leaves a file that %s: penstock %s', (_what, args, name) => {
    const files = { ...pipeline('  a: {run: echo x}'), 'ci.yml': WORKFLOW, '.pipeline.lock': 'of before' };
    const cwd = folder(files);
    const { status, stderr } = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, MAIN, ...args], {
      cwd,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([2, expect.stringMatching(`^penstock: cannot write ${name}: `)]);
    expect(readdirSync(cwd).toSorted()).toEqual(Object.keys(files).toSorted());
    expect(readFileSync(join(cwd, '.pipeline.lock'), 'utf8')).toBe('of before');
  });
});

describe('an extension that the disk does not take', () => {
  const limited = (blocks: number, args: readonly string[], cwd: string) =>
    spawnSync('sh', ['-c', `ulimit -f ${blocks}; exec "$0" "$@"`, process.execPath, MAIN, 'extension', ...args], {
      cwd,
      encoding: 'utf8',
    });

  it('has the package of before, and no other', () => {
    const cwd = folder({ 'made.tar.gz': 'of before' });
    expect(limited(1_000, ['init', 'utility/hello'], cwd).status).toBe(0);
    const { status, stderr } = limited(0, ['pack', '--output', 'made.tar.gz', 'hello'], cwd);
    expect([status, stderr]).toEqual([2, expect.stringContaining('penstock: cannot write made.tar.gz: ')]);
    expect(readdirSync(cwd).toSorted()).toEqual(['hello', 'made.tar.gz']);
    expect(readFileSync(join(cwd, 'made.tar.gz'), 'utf8')).toBe('of before');
  });

  it('goes into a pipe that is named for it, which stays one', () => {
    const cwd = folder();
    const pipe = join(cwd, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    const commands = 'init utility/hello && "$0" "$1" extension pack --output pipe hello';
    const { status, stderr } = spawnSync('sh', ['-c', `"$0" "$1" extension ${commands}`, process.execPath, MAIN], {
      cwd,
      encoding: 'utf8',
    });
    expect([status, stderr, lstatSync(pipe).isFIFO()]).toEqual([0, expect.any(String), true]);
    const read = Buffer.alloc(100);
    readSync(fd, read);
    closeSync(fd);
    expect(read.toString('latin1')).toContain('CHANGELOG.md');
  });

  it('is not begun: the next try finds an empty folder', () => {
    const cwd = folder();
    const { status, stdout, stderr } = limited(1, ['init', 'utility/hello'], cwd);
    expect([status, stdout, stderr]).toEqual([2, '', expect.stringContaining('penstock: cannot write to hello: ')]);
    expect(readdirSync(join(cwd, 'hello'))).toEqual([]);
  });
});

it('a reader that has gone before it was told anything ends a command with 141', async () => {
  const command = start(['version'], { cwd: folder() });
  command.child.stdout?.destroy();
  expect(await command.ended).toMatchObject({ code: 141, stderr: '' });
});

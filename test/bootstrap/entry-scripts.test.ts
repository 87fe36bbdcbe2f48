import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverScript } from './archives.ts';
import { Checkout, outcomeOf } from './checkout.ts';

/** Prints what it was given; waits for a signal, dies by one, or ends with 3. */
const program = `
const last: string | undefined = process.argv.at(-1);
if (last === 'wait') {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => { console.log(signal); process.exit(7); });
  setInterval(() => undefined, 1000);
} else process.exitCode = 3;
console.log(JSON.stringify({ pid: process.pid, args: process.argv.slice(2), cwd: process.cwd(), major: Number.parseInt(process.versions.node, 10), broker: process.env.SERVICE_NATS_SERVER ?? null, path: process.env.PATH, memory: ['NODE_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_'].map((name) => process.env[name] ?? null), npm: Object.keys(process.env).filter((name) => /^npm_|INIT_CWD/.test(name)) }));
if (last === 'die') process.kill(process.pid, 'SIGKILL');
`;

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
  checkout.write('cli/src/main.ts', program);
  checkout.script('bin/nats-server', serverScript('2.15.1'));
});
afterEach(() => checkout.remove());

it('start runs `serve` with its arguments under Node 26, with the broker in SERVICE_NATS_SERVER, and ends as it ends', async () => {
  const outcome = await checkout.run('bootstrap/start.js', ['--listen', '127.0.0.1:0']);
  expect(outcome).toMatchObject({ code: 3, stderr: '' });
  const told = JSON.parse(outcome.stdout);
  expect(told).toMatchObject({ args: ['serve', '--listen', '127.0.0.1:0'], broker: join(checkout.bin, 'nats-server') });
  expect(told.major).toBeGreaterThanOrEqual(26);
});

it('penstock works through a link, in the folder of its user, and has a broker only for `serve`', async () => {
  const folder = join(checkout.root, 'work');
  mkdirSync(folder);
  symlinkSync('../bootstrap/penstock.js', join(folder, 'penstock'));
  const run = await checkout.run('work/penstock', ['run', 'a b.yaml'], {}, folder);
  expect(JSON.parse(run.stdout)).toMatchObject({ args: ['run', 'a b.yaml'], cwd: realpathSync(folder), broker: null });
  const serve = await checkout.run('work/penstock', ['serve'], {}, folder);
  expect(JSON.parse(serve.stdout)).toMatchObject({ broker: join(checkout.bin, 'nats-server') });
});

it('penstock says so where the folder that one is in was removed', async () => {
  const gone = join(checkout.root, 'gone');
  const shell = `mkdir '${gone}' && cd '${gone}' && rmdir '${gone}' && exec "$0" "$@"`;
  const args = ['-c', shell, process.execPath, join(checkout.root, 'bootstrap/penstock.js'), 'run'];
  const outcome = await outcomeOf(
    checkout.launchProgram('/bin/sh', args, { PATH: `${checkout.pathWithNode}:/bin:/usr/bin` }, checkout.root),
  );
  expect(outcome).toMatchObject({
    code: 1,
    stderr: 'penstock: the folder that you are in is not there any more: go to another one.\n',
  });
});

it('a server is started with bounds on its memory, whichever way; what its user has set himself counts', async () => {
  const memoryOf = async (outcome: ReturnType<typeof outcomeOf>) =>
    JSON.parse((await outcome).stdout).memory as unknown;
  const own = { NODE_OPTIONS: '--max-semi-space-size=32', MALLOC_ARENA_MAX: '8' };
  const bounds = ['--max-semi-space-size=8', '2', '131072'];
  expect(await memoryOf(checkout.run('bootstrap/start.js', []))).toEqual(bounds);
  expect(await memoryOf(checkout.run('bootstrap/start.js', [], own))).toEqual([
    '--max-semi-space-size=8 --max-semi-space-size=32',
    '8',
    '131072',
  ]);
  for (const command of ['serve', 'service', 'runner', 'run']) {
    const expected = command === 'run' ? [null, null, null] : bounds;
    expect(await memoryOf(outcomeOf(launchShell('bootstrap/penstock.sh', [command])))).toEqual(expected);
  }
  expect(await memoryOf(outcomeOf(launchShell('bootstrap/penstock.sh', ['serve'], own)))).toEqual([
    '--max-semi-space-size=8 --max-semi-space-size=32',
    '8',
    '131072',
  ]);
});

function launchShell(
  script: string,
  args: readonly string[],
  changes: Record<string, string> = {},
  folder = checkout.root,
): ChildProcess {
  const env = { PATH: checkout.pathWithNode, ...changes };
  return checkout.launchProgram('/bin/sh', [join(checkout.root, script), ...args], env, folder);
}

describe('penstock.sh', () => {
  const ran = async (args: readonly string[] = ['run'], folder = checkout.root) => {
    const outcome = await outcomeOf(launchShell('bootstrap/penstock.sh', args, {}, folder));
    return { ...outcome, told: JSON.parse(outcome.stdout) as Record<string, unknown> };
  };

  it('starts Node 26 at once where the bootstrap has seen one, and Node once: the program is its own process', async () => {
    await checkout.run('bootstrap/penstock.js', ['version']);
    const folder = join(checkout.root, 'work here');
    mkdirSync(folder);
    const { code, told } = await ran(['run', 'a b.yaml'], folder);
    expect([code, told]).toMatchObject([3, { args: ['run', 'a b.yaml'], cwd: realpathSync(folder), broker: null }]);
    const child = launchShell('bootstrap/penstock.sh', ['wait']);
    const ended = outcomeOf(child);
    if (child.stdout) await once(child.stdout, 'data');
    // Nobody is between: what the caller kills is the program itself.
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({
      code: null,
      signal: 'SIGKILL',
      stdout: expect.stringContaining(`"pid":${child.pid}`),
    });
  });

  it('works with the node of the PATH where there is no word of a newer one, or it is gone', async () => {
    const word = join(checkout.root, 'node_modules/.penstock-node');
    for (const prepare of [() => {}, () => writeFileSync(word, '/nowhere/bin/node\n'), () => rmSync(word)]) {
      prepare();
      expect(await ran()).toMatchObject({ code: 3, stderr: '', told: { args: ['run'] } });
    }
  });

  it('is found through npm’s link to it, and takes what npm has added out of the environment', async () => {
    await checkout.run('bootstrap/penstock.js', ['version']);
    const folder = join(checkout.root, 'work');
    mkdirSync(folder);
    symlinkSync('../bootstrap/penstock.sh', join(folder, 'penstock'));
    const npm = { npm_lifecycle_event: 'penstock', INIT_CWD: folder };
    const outcome = await outcomeOf(launchShell('work/penstock', ['run'], npm));
    expect(JSON.parse(outcome.stdout)).toMatchObject({ args: ['run'], cwd: realpathSync(folder), npm: [] });
  });
});

it('`npm run penstock` works in the folder it was called from', async () => {
  const folder = join(checkout.root, 'work');
  mkdirSync(folder);
  const outcome = await checkout.run('bootstrap/penstock.js', ['run'], {
    npm_lifecycle_event: 'penstock',
    INIT_CWD: folder,
  });
  expect(JSON.parse(outcome.stdout)).toMatchObject({ cwd: folder });
});

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s is passed on, and the program decides how it ends',
  async (signal) => {
    const child = checkout.launch('bootstrap/start.js', ['wait']);
    const ended = outcomeOf(child);
    if (child.stdout) await once(child.stdout, 'data');
    child.kill(signal);
    expect(await ended).toMatchObject({ code: 7, stdout: expect.stringContaining(signal) });
  },
);

it('npm’s shell becomes the script, so that a SIGTERM that npm passes on to it reaches the program', async () => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  for (const script of Object.values(scripts)) expect(script).toMatch(/^exec /);
  const env = { PATH: checkout.pathWithNode };
  // As npm does it.
  const child = checkout.launchProgram('/bin/sh', ['-c', `${scripts.start} wait`], env);
  const ended = outcomeOf(child);
  if (child.stdout) await once(child.stdout, 'data');
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 7, stdout: expect.stringContaining('SIGTERM') });
});

it('a program killed by a signal ends the script by the same signal', async () => {
  expect(await checkout.run('bootstrap/start.js', ['die'])).toMatchObject({ code: null, signal: 'SIGKILL' });
});

it('run starts a TypeScript program or a named tool, and refuses what it does not know in one sentence', async () => {
  checkout.write('program.ts', program);
  expect(JSON.parse((await checkout.run('bootstrap/run.js', ['program.ts', 'x'])).stdout)).toMatchObject({
    args: ['x'],
  });
  checkout.write('node_modules/typescript/bin/tsc', 'console.log("tsc", process.argv.slice(2).join(" "));');
  expect((await checkout.run('bootstrap/run.js', ['--tool', 'tsc', '--noEmit'])).stdout).toBe('tsc --noEmit\n');
  expect(await checkout.run('bootstrap/run.js', ['--tool', 'rm'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no tool "rm"'),
  });
  expect(await checkout.run('bootstrap/run.js', ['absent.ts'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('absent.ts'),
  });
});

it('a server started by npm finds none of the checkout’s own programs on its PATH, nor npm’s variables', async () => {
  const bins = [checkout.root, dirname(checkout.root)].map((folder) => join(folder, 'node_modules', '.bin'));
  const npm = { npm_lifecycle_event: 'start', npm_config_cache: '/home/me/.npm', INIT_CWD: checkout.root };
  const path = [
    ...bins,
    '/opt/npm/node-gyp-bin',
    '/home/me/node_modules/.bin',
    checkout.bin,
    process.env['PATH'] ?? '',
  ].join(':');
  const outcome = await checkout.run('bootstrap/start.js', [], { ...npm, PATH: path });
  const { path: seen, npm: variables } = JSON.parse(outcome.stdout);
  expect(seen.split(':')).toContain('/home/me/node_modules/.bin');
  expect(seen).not.toContain(join(checkout.root, 'node_modules'));
  expect(seen).not.toContain('node-gyp-bin');
  expect(variables).toEqual([]);
});

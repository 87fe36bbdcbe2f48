import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, utimesSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Checkout, outcomeOf, userNodeMajor } from './checkout.ts';
import type { Outcome } from './checkout.ts';

const noBroker = { SERVICE_NATS_URL: 'nats://127.0.0.1:4222' };

let checkout: Checkout;
beforeEach(() => void (checkout = new Checkout()));
afterEach(() => checkout.remove());

const ensure = (env: Record<string, string> = {}): Promise<Outcome> =>
  checkout.run('bootstrap/run.js', [], { ...noBroker, ...env });
const npmCalls = (): number =>
  existsSync(join(checkout.root, 'npm-calls')) ? checkout.read('npm-calls').trim().split('\n').length : 0;
const removeModules = (): void => rmSync(join(checkout.root, 'node_modules'), { recursive: true });

it('missing dependencies are installed as locked, without scripts, with the packages that checks and Node 26 need', async () => {
  removeModules();
  const outcome = await ensure({ NODE_ENV: 'production' });
  expect(outcome.code, outcome.stderr).toBe(0);
  expect(outcome.stderr).toContain('Installing');
  for (const part of ['ci ', '--ignore-scripts', '--include=dev', '--include=optional', '--loglevel=error'])
    expect(checkout.read('npm-calls')).toContain(part);
});

it('settings of a user by which npm would install nothing, elsewhere, or a part do not count', async () => {
  removeModules();
  // As `npm start --no-workspaces` gives it on; the others are overruled by options.
  const settings = { npm_config_workspaces: 'false', npm_config_workspace: 'libs/a', npm_config_omit: 'dev' };
  expect(await ensure(settings)).toMatchObject({ code: 0 });
  expect(checkout.read('npm-settings')).toBe('npm_config_omit');
  for (const part of ['--no-dry-run', '--no-package-lock-only', '--no-global', '--install-strategy=hoisted'])
    expect(checkout.read('npm-calls')).toContain(part);
});

it('with nothing to do it is silent and does not start npm', async () => {
  await ensure();
  const outcome = await ensure();
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  expect(npmCalls()).toBe(0);
});

it('a tree that npm itself installed is taken as it is', async () => {
  expect(await ensure()).toMatchObject({ code: 0, stderr: '' });
  expect(npmCalls()).toBe(0);
  expect(existsSync(join(checkout.root, 'node_modules/.penstock-stamp.json'))).toBe(true);
});

it('a touched lockfile with the same content installs nothing; a changed one does, once', async () => {
  await ensure();
  utimesSync(join(checkout.root, 'package-lock.json'), 1, 1);
  await ensure();
  expect(npmCalls()).toBe(0);
  checkout.write('package-lock.json', checkout.lockfile('1.0.1'));
  expect((await ensure()).stderr).toContain('Updating');
  await ensure();
  expect(npmCalls()).toBe(1);
});

it('a tree from another platform, or one whose Node 26 is gone, is installed again', async () => {
  await ensure();
  checkout.write(
    'node_modules/.penstock-stamp.json',
    checkout.read('node_modules/.penstock-stamp.json').replace(process.platform, 'elsewhere'),
  );
  checkout.write(
    'node_modules/.package-lock.json',
    JSON.stringify({ packages: { 'node_modules/dependency': { version: '1.0.0' } } }),
  );
  rmSync(checkout.nodeBinary);
  expect(await ensure()).toMatchObject({ code: 0 });
  expect(npmCalls()).toBe(1);
});

it('an install that leaves out Node 26 is told apart from one that worked', async () => {
  removeModules();
  const outcome = await ensure({ SANDBOX_NPM: 'without-node' });
  // A user whose own Node is new enough needs no other.
  const needed = userNodeMajor < 26;
  expect({ code: outcome.code, told: outcome.stderr.includes('npm left out the package') }).toEqual({
    code: needed ? 1 : 0,
    told: needed,
  });
});

it('a failing npm gives one sentence with its reason and the remedy', async () => {
  removeModules();
  const outcome = await ensure({ SANDBOX_NPM: 'fail' });
  expect(outcome.code).toBe(1);
  const sentence = outcome.stderr.trim().split('\n').at(-1);
  expect(sentence).toContain('ECONNREFUSED: FetchError: request to the registry failed');
  expect(sentence).toContain('run the command again');
});

it('without npm the sentence says so', async () => {
  removeModules();
  expect((await ensure({ npm_execpath: '' })).stderr).toContain('npm cannot be started');
});

it('an install that was killed half-way is done again by the next start', async () => {
  removeModules();
  expect(await ensure({ SANDBOX_NPM: 'killed' })).toMatchObject({ signal: 'SIGKILL' });
  const outcome = await ensure();
  expect(outcome.code, outcome.stderr).toBe(0);
  expect(npmCalls()).toBe(2);
});

it('an install that is told to stop ends with its npm: one left alone would go on beside that of the next start', async () => {
  removeModules();
  expect(await ensure({ SANDBOX_NPM: 'told' })).toMatchObject({ signal: 'SIGTERM', stdout: '' });
  expect(existsSync(join(checkout.root, 'npm-ended'))).toBe(true);
});

it('an install that is killed alone leaves its npm behind: the next start waits for that, and installs nothing beside it', async () => {
  removeModules();
  const killed = checkout.launch('bootstrap/run.js', [], { ...noBroker, SANDBOX_NPM: 'left' });
  expect(await once(killed, 'exit')).toEqual([null, 'SIGKILL']);
  const next = checkout.launch('bootstrap/run.js', [], noBroker);
  const ends = outcomeOf(next);
  await once(next.stderr ?? next, 'data');
  checkout.write('go-on', '');
  expect(await ends).toMatchObject({ code: 0, stderr: 'penstock: Waiting for another start that is installing.\n' });
  expect(npmCalls()).toBe(1);
});

it('another lockfile is installed also where an archive has given it the size, the time and the place of the one before', async () => {
  const at = new Date(1_000_000_000_000);
  checkout.install();
  utimesSync(join(checkout.root, 'package-lock.json'), at, at);
  await ensure();
  checkout.write('package-lock.json', checkout.lockfile('1.0.1'));
  utimesSync(join(checkout.root, 'package-lock.json'), at, at);
  expect((await ensure()).stderr).toContain('Updating');
  expect(npmCalls()).toBe(1);
});

it('the lock of a dead process does not hold up a start', async () => {
  removeModules();
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  checkout.write('.cache/install.lock', JSON.stringify({ host: hostname(), pid: dead, started: '1' }));
  expect(await ensure()).toMatchObject({ code: 0 });
  // A pid that was given out again is told by its start time.
  checkout.write('package-lock.json', checkout.lockfile('1.0.2'));
  checkout.write('.cache/install.lock', JSON.stringify({ host: hostname(), pid: process.pid, started: '1' }));
  // Where no start time can be read, the pid's present owner is waited for; it is this test.
  if (process.platform !== 'linux') rmSync(join(checkout.root, '.cache/install.lock'));
  expect(await ensure()).toMatchObject({ code: 0 });
});

it('starts at the same time install once', async () => {
  removeModules();
  const outcomes = await Promise.all(
    Array.from({ length: 4 }, () => outcomeOf(checkout.launch('bootstrap/run.js', [], noBroker))),
  );
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect(npmCalls()).toBe(1);
});

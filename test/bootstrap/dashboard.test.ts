/** The dashboard is built by the start that needs it, and by no other. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { serverScript } from './archives.ts';
import { Checkout, type Outcome } from './checkout.ts';

/** Stands for vite: its output tells which sources it has seen; where these say so it fails. */
const fakeVite = `
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const source = readFileSync('app/main.tsx', 'utf8');
if (source === 'broken') { console.error('main.tsx is broken'); process.exit(1); }
const folder = process.argv[process.argv.indexOf('--outDir') + 1];
mkdirSync(folder, { recursive: true });
writeFileSync(folder + '/index.html', source);
`;
const BUILT = 'services/dashboard/dist/index.html';
const SAID = 'Building the dashboard';

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
  checkout.write('cli/src/main.ts', 'console.log("started");');
  checkout.script('bin/nats-server', serverScript('2.15.1'));
  checkout.write('node_modules/vite/package.json', '{"type":"commonjs"}');
  checkout.write('node_modules/vite/bin/vite.js', fakeVite);
  checkout.write('services/dashboard/vite.config.js', '');
  checkout.write('services/dashboard/package.json', '{}');
  checkout.write('services/dashboard/app/main.tsx', 'first');
});
afterEach(() => checkout.remove());

const start = (): Promise<Outcome> => checkout.run('bootstrap/start.js');

it('a start builds it once, and again when its sources have changed', async () => {
  expect(await start()).toMatchObject({ code: 0, stdout: 'started\n', stderr: expect.stringContaining(SAID) });
  expect(checkout.read(BUILT)).toBe('first');
  expect((await start()).stderr).toBe('');
  checkout.write('services/dashboard/app/main.tsx', 'second');
  expect((await start()).stderr).toContain(SAID);
  expect(checkout.read(BUILT)).toBe('second');
});

it('a build takes away what one that was killed has left, and nothing of one that goes on', async () => {
  const { pid: gone } = spawnSync('true');
  checkout.write(`services/dashboard/.dist-${gone}/index.html`, 'half');
  checkout.write(`services/dashboard/.dist-${process.pid}/index.html`, 'under way');
  await start();
  expect(readdirSync(join(checkout.root, 'services/dashboard')).filter((name) => name.startsWith('.'))).toEqual([
    `.dist-${process.pid}`,
  ]);
});

it('a build that fails is told, the one before stays, and the server starts', async () => {
  await start();
  checkout.write('services/dashboard/app/main.tsx', 'broken');
  const outcome = await start();
  expect(outcome).toMatchObject({ code: 0, stdout: 'started\n' });
  expect(outcome.stderr).toContain('main.tsx is broken');
  expect(checkout.read(BUILT)).toBe('first');
});

it('commands that serve nothing build nothing', async () => {
  expect((await checkout.run('bootstrap/penstock.js', ['version'])).stderr).toBe('');
  expect((await checkout.run('bootstrap/penstock.js', ['serve'])).stderr).toContain(SAID);
});

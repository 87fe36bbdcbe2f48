/**
 * Pictures of every page of the dashboard into `docs/dashboard/`, light and dark, wide and on a phone, from a server of its own with
 * runs made for them:
 *   node bootstrap/run.js test/e2e/dashboard-screenshots-main.ts
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Page } from 'playwright-core';
import { startServer, trigger, TRIGGER } from '../support/server.ts';

const FOLDER = fileURLToPath(new URL('../../docs/dashboard/', import.meta.url));
const WIDE = { width: 1_280, height: 860 };
const PHONE = { width: 390, height: 844 };

const SHIP = `pipeline: {name: ship}
stages:
  build: {run: "for i in $(seq 1 40); do printf '\\\\033[32m ok \\\\033[0m compiled module %d\\\\n' $i; done; sleep 2"}
  lint: {run: "echo no findings; sleep 1"}
  test: {after: build, matrix: {os: [debian, alpine, fedora, arch, ubuntu, rocky]}, run: "echo on $MATRIX_OS; sleep 1"}
  docs: {after: build, run: "echo 12 pages; sleep 1"}
  package: {after: [test, lint], run: "printf '\\\\033[31merror:\\\\033[0m the archive is larger than allowed\\\\n' >&2; exit 3"}
  sign-off: {after: docs, approval: {message: "Are the docs in order?"}}
  publish: {after: [package, sign-off], run: "echo published"}
`;

const browserPath = chromiumFor('pictures of the dashboard');
if (browserPath === undefined) throw new Error('there is no chromium on the PATH: install one and run this again');
mkdirSync(FOLDER, { recursive: true });
const server = await startServer({ env: { SERVICE_ADMINS: 'sub:ada' } });
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
try {
  for (const name of [
    'nightly',
    'docs',
    'library',
    'library',
    'docs',
    'nightly',
    'library',
    'library',
    'docs',
    'library',
  ])
    await server.graphql(TRIGGER, {
      yaml: JSON.stringify({
        pipeline: { name },
        stages: { a: { run: name === 'docs' ? 'exit 1' : `sleep 0.${name.length}` }, b: { after: 'a', run: 'true' } },
      }),
      waitSeconds: 30,
    });
  const before = await trigger(server, SHIP.replace('exit 3', 'exit 0').replace('sleep 2', 'true'));
  const page = await browser.newPage({ viewport: WIDE, reducedMotion: 'reduce' });
  page.setDefaultTimeout(60_000);
  await page.goto(`${server.url}/dashboard/`);
  await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Login name').fill('ada');
  await pictures(page, 'login');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Allow' }).waitFor();
  await pictures(page, 'consent');
  await page.getByRole('button', { name: 'Allow' }).click();
  const ship = await trigger(server, SHIP);
  await page.locator(`a[href$="${ship}"]`).waitFor();
  await pictures(page, 'runs');
  await page.locator(`a[href$="${ship}"]`).click();
  await page.locator('.log-text', { hasText: 'larger than allowed' }).waitFor();
  await pictures(page, 'run');
  await page.getByRole('button', { name: 'Time', exact: true }).click();
  await page.getByRole('button', { name: 'Back in time' }).click();
  await page.getByRole('slider').waitFor();
  await pictures(page, 'run-time');
  await goTo(page, `/compare?a=${before}&b=${ship}`);
  await page.getByRole('group', { name: 'Stages of both' }).waitFor();
  await pictures(page, 'compare');
  await goTo(page, '/pipelines');
  await page.locator('.pipelines > li').nth(3).waitFor();
  await pictures(page, 'pipelines');
  await goTo(page, '/pipelines?name=library');
  await page.getByRole('region', { name: 'How long runs take' }).getByRole('img').waitFor();
  await pictures(page, 'pipeline');
  for (const [title, seen, name] of [
    ['Trigger', 'What it would run', 'trigger'],
    ['Schedules', 'Nothing starts by itself', 'schedules'],
    ['Deliveries', 'Nothing was delivered', 'deliveries'],
    ['Hooks', 'A new hook', 'hooks'],
    ['Extensions', 'downloads', 'extensions'],
    ['Account', 'pipeline runs', 'account'],
    ['Admin', 'No stage waits for a runner.', 'admin'],
    ['People', 'Nobody is.', 'admin-people'],
    ['Dead letters', 'None: in the last seven days', 'admin-letters'],
    ['Runner tokens', 'With one a machine becomes a runner', 'admin-tokens'],
    ['Audit log', 'of the newest', 'admin-audit'],
  ] as const) {
    await page.getByRole('link', { name: title, exact: true }).click();
    await page.getByText(seen).first().waitFor();
    if (name === 'hooks') {
      await page.getByLabel('Address').fill('https://hooks.example.org/ci');
      await page.getByRole('button', { name: 'Make a hook' }).click();
      await page.getByRole('button', { name: 'I have it' }).click();
      await page.getByText('https://hooks.example.org/ci').waitFor();
    }
    await pictures(page, name);
  }
  await page.getByRole('link', { name: 'Extensions', exact: true }).click();
  await page.locator('.cards a').first().click();
  await page.locator('.readme table').first().waitFor();
  await pictures(page, 'extension');
} finally {
  await browser.close();
  await server.stop();
}

/** Within the page that is open: whoever loads it anew signs in again. */
async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', '/dashboard${path}'); dispatchEvent(new PopStateEvent('popstate'))`);
}

/** Of the page as it stands, in each look; small enough to be kept beside the sources. */
async function pictures(page: Page, name: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  for (const [screen, viewport] of Object.entries({ wide: WIDE, phone: PHONE }))
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize(viewport);
      // What was said of something that was done would stand before what it was done with.
      await page.locator('.notice').first().waitFor({ state: 'detached' });
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))');
      const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 72 });
      writeFileSync(join(FOLDER, `${name}-${screen}-${colorScheme}.webp`), Buffer.from(data, 'base64'));
    }
  await page.setViewportSize(WIDE);
  await devtools.detach();
}

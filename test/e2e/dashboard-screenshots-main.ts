/**
 * Pictures of the dashboard into `docs/dashboard/`, from a server of its own with runs made for them:
 *   node bootstrap/run.js test/e2e/dashboard-screenshots-main.ts
 */
import { mkdirSync } from 'node:fs';
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
  for (const name of ['nightly', 'docs', 'library'])
    await server.graphql(TRIGGER, {
      yaml: JSON.stringify({ pipeline: { name }, stages: { a: { run: name === 'docs' ? 'exit 1' : 'true' } } }),
      waitSeconds: 30,
    });
  await trigger(server, SHIP);
  const page = await browser.newPage({ viewport: WIDE, reducedMotion: 'reduce' });
  page.setDefaultTimeout(60_000);
  await page.goto(`${server.url}/dashboard/`);
  await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Login name').fill('ada');
  await picture(page, 'login-light.png', 'light', WIDE);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByRole('link', { name: 'ship', exact: true }).waitFor();
  await picture(page, 'runs-light.png', 'light', WIDE);
  await page.getByRole('link', { name: 'ship', exact: true }).click();
  await page.locator('.log-text', { hasText: 'larger than allowed' }).waitFor();
  await picture(page, 'run-light.png', 'light', WIDE);
  await page.locator('.node', { hasText: 'build' }).click();
  await page.locator('.log-text', { hasText: 'module 3' }).first().waitFor();
  await picture(page, 'run-dark.png', 'dark', WIDE);
  await picture(page, 'run-phone.png', 'light', PHONE);
  await page.getByRole('link', { name: 'Trigger', exact: true }).click();
  await page.getByText('The file is in order.').waitFor();
  await picture(page, 'trigger-dark.png', 'dark', WIDE);
} finally {
  await browser.close();
  await server.stop();
}

async function picture(page: Page, name: string, colorScheme: 'light' | 'dark', viewport: typeof WIDE): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.setViewportSize(viewport);
  await page.screenshot({ path: join(FOLDER, name) });
}

/** The pages of the dashboard beside those of runs, in a browser against a whole server. */
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { complaintsOf, obstaclesOf, pipeline, signIn, tokensOf } from '../support/dashboard.ts';
import { startServer, trigger, TRIGGER, type RunningServer } from '../support/server.ts';

const browserPath = chromiumFor('the pages of the dashboard in a browser');

describe.skipIf(browserPath === undefined)('the pages of the dashboard', { timeout: 120_000 }, () => {
  let server: RunningServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  let ada: string | undefined;

  beforeAll(async () => {
    [server, browser] = await Promise.all([
      startServer({ env: { SERVICE_ADMINS: 'sub:ada' } }),
      chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([browser.close(), server.stop()]);
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    complaints = complaintsOf(page);
  });
  afterEach(async () => {
    await context.close();
  });

  async function open(path: string): Promise<void> {
    await page.goto(`${server.url}/dashboard${path}`);
    await page.locator('main').waitFor();
  }

  /** Within the page that is open: whoever loads it anew signs in again. */
  async function goTo(path: string): Promise<void> {
    await page.evaluate(
      `history.pushState(null, '', '/dashboard${path}'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
  }

  /** As ada: how a pipeline fares is counted from the runs that are one's own. */
  async function runAsAda(text: string): Promise<void> {
    ada ??= (await tokensOf(server, 'ada'))['access_token'];
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ada}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: TRIGGER, variables: { yaml: text, waitSeconds: 60 } }),
    });
    expect(await response.json()).not.toHaveProperty('errors');
  }

  it('shows how a pipeline fares, and goes on as its runs end', async () => {
    for (const status of ['true', 'true', 'exit 1', 'true', 'true', 'true'])
      await runAsAda(pipeline('fares', { a: { run: status }, b: { run: 'true' } }));
    await open('/pipelines');
    await signIn(page, 'ada');
    const card = page.locator('.pipelines > li', { hasText: 'fares' });
    await card.getByText('6 runs').waitFor();
    await card.getByText('83 %').waitFor();
    expect(await card.locator('.bars a').count()).toBe(6);
    await runAsAda(pipeline('fares', { a: { run: 'true' }, b: { run: 'true' } }));
    await card.getByText('7 runs').waitFor();
    await card.getByRole('link', { name: 'fares' }).click();
    await page.getByText('6 of 7 (86 %)').waitFor();
    await page.getByRole('row', { name: 'a 7 1 (14 %)' }).waitFor();
    await page.getByRole('img', { name: /^p50 went from/u }).waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('link', { name: /^failed after/u }).click();
    await page.getByText('exit code 1', { exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('makes a hook, shows what it was sent, and sends that again', async () => {
    await open('/hooks');
    await signIn(page, 'ada');
    await page.getByLabel('Address').fill('https://hooks.invalid/ci');
    await page.getByRole('button', { name: 'Make a hook' }).click();
    await page
      .getByText(/^Copy it now/u)
      .getByText(/^whsec_/u)
      .waitFor();
    await page.getByText('https://hooks.invalid/ci').waitFor();
    // A run of ada's own: hooks are told of those of their tenant.
    await page.getByRole('link', { name: 'Trigger', exact: true }).click();
    await page.getByRole('button', { name: 'Start it' }).click();
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
    await page.getByRole('link', { name: 'Hooks', exact: true }).click();
    await page.getByText('Deliveries', { exact: true }).last().click();
    const row = page.getByRole('row', { name: /^run\.completed/u });
    // It is written down once the run's end has gone through the stream of events.
    await expect
      .poll(
        async () => {
          await page.getByRole('button', { name: 'Look again' }).click();
          return await row.count();
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBe(1);
    expect(await obstaclesOf(page)).toEqual([]);
    await row.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('It is sent again.').waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Nobody is told of runs').waitFor();
    expect(complaints).toEqual([]);
  });

  it('lets an admin pause, drain, hand out runner tokens and read who did what, and shows nobody else the way', async () => {
    await open('/');
    await signIn(page, 'bob');
    expect(await page.getByRole('link', { name: 'Admin', exact: true }).count()).toBe(0);
    await goTo('/admin');
    await page.getByText(/admin/u).first().waitFor();
    expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'ada');
    await page.getByRole('link', { name: 'Admin', exact: true }).click();

    await page.getByLabel('Why').fill('the disk is changed');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('region', { name: 'Held up' }).getByText('the disk is changed').waitFor();
    const id = await trigger(server, pipeline('held', { a: { run: 'true' } }));
    await page.getByRole('region', { name: 'Queue' }).getByText('paused').waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Nothing is: stages go to runners as they come.').waitFor();
    const runners = page.getByRole('region', { name: 'Runners' });
    await runners.getByRole('button', { name: 'Drain' }).click();
    await runners.getByText('drained').waitFor();
    await runners.getByRole('button', { name: 'Take it back' }).click();
    await runners.getByRole('button', { name: 'Drain' }).waitFor();

    await page.getByRole('link', { name: 'Runner tokens' }).click();
    await page.getByLabel('Name').fill('<b>garage</b>');
    await page.getByRole('button', { name: 'Make a token' }).click();
    await page
      .getByText(/^Copy it now/u)
      .getByText(/^rt_/u)
      .waitFor();
    await page.getByText('<b>garage</b>').waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('None. With one a machine becomes a runner').waitFor();

    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByLabel('Only what has').fill('pause');
    await page.getByRole('cell', { name: /pause/u }).first().waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await goTo(`/runs/${id}`);
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('goes back in time within a run, and sets two runs side by side', async () => {
    const first = await trigger(server, pipeline('twice', { a: { run: 'true' }, b: { after: 'a', run: 'true' } }));
    const file = pipeline('twice', { a: { run: 'true' }, b: { after: 'a', run: 'exit 1' }, c: { run: 'true' } });
    await server.graphql(TRIGGER, { yaml: file, waitSeconds: 60 });
    await open('/runs?pipeline=twice');
    await signIn(page, 'ada');
    await page
      .locator('tr', { has: page.getByRole('img', { name: 'failed' }) })
      .locator('.run-link')
      .click();
    await page.locator('.node.is-failed', { hasText: 'b' }).waitFor();

    await page.getByRole('button', { name: 'Back in time' }).click();
    const slider = page.getByRole('slider', { name: 'Version of the run' });
    await slider.press('Home');
    await page.waitForURL((url) => url.searchParams.get('at') === '1');
    await page.locator('.node.is-pending', { hasText: 'b' }).waitFor();
    expect(await page.locator('.node.is-failed').count()).toBe(0);
    await page.getByRole('heading', { name: 'b', exact: true }).click();
    await page.keyboard.press(']');
    await page.waitForURL((url) => url.searchParams.get('at') === '2');
    expect(await obstaclesOf(page)).toEqual([]);
    await slider.press('End');
    await page.locator('.node.is-failed', { hasText: 'b' }).waitFor();
    await page.getByRole('button', { name: 'Back in time' }).click();
    await slider.waitFor({ state: 'detached' });

    await page.getByText('Compare with another run').click();
    await page.getByRole('group', { name: 'Other runs' }).getByRole('link').click();
    await page.waitForURL((url) => url.searchParams.get('a') === first);
    await page.getByRole('row', { name: 'b broken' }).waitFor();
    await page.getByRole('row', { name: 'c added' }).waitFor();
    expect(await page.getByRole('row', { name: 'a same' }).count()).toBe(0);
    await page.getByRole('button', { name: 'All stages' }).click();
    await page.getByRole('row', { name: 'a same' }).waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('link', { name: 'The other way round' }).click();
    await page.getByRole('row', { name: 'b fixed' }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('draws what a file would run while it is typed, and leads from a stage to its lines', async () => {
    await open('/trigger');
    const preview = page.getByRole('region', { name: 'What it would run' });
    await preview.getByText('2 stages').waitFor();
    const editor = page.getByRole('textbox', { name: 'Pipeline file' });
    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('  deploy: {after: test, run: echo}');
    await preview.getByText('3 stages').waitFor();
    expect(await preview.locator('.node').allTextContents()).toEqual(['build', 'test', 'deploy']);
    expect(await obstaclesOf(page)).toEqual([]);
    await preview.getByRole('button', { name: 'build' }).click();
    await page.keyboard.type('X');
    await preview.getByText('before the mistake').waitFor();
    expect(await editor.textContent()).toContain('Xbuild:');
    expect(complaints).toEqual([]);
  });
});

/** The dashboard in a browser, of who is signed in: when the session cannot be renewed for a while, when it ends, and when hands are quick. */
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signIn, tokensOf } from '../support/dashboard.ts';
import { startServer, type RunningServer } from '../support/server.ts';

const browserPath = chromiumFor('the session of the dashboard');

describe.skipIf(browserPath === undefined)('who is signed in to the dashboard', { timeout: 120_000 }, () => {
  let server: RunningServer;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    [server, browser] = await Promise.all([
      startServer({}),
      chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([browser.close(), server.stop()]);
  });
  beforeEach(async () => {
    const context = await browser.newContext();
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(`${server.url}/dashboard/`);
    await signIn(page, 'ada');
  });
  afterEach(async () => {
    await page.context().close();
  });

  const goTo = async (name: string): Promise<void> =>
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();

  it('sees changes again when the session could not be renewed for a while', async () => {
    let isAway = true;
    await page.route('**/runs/events', (route) =>
      isAway ? route.fulfill({ status: 401, json: { error: 'unauthenticated', message: 'spent' } }) : route.continue(),
    );
    await page.route('**/auth/refresh', (route) =>
      isAway ? route.fulfill({ status: 503, json: { error: 'unavailable', message: 'later' } }) : route.continue(),
    );
    await goTo('Pipelines');
    await page.getByText('not live: trying again').waitFor();
    isAway = false;
    await page.getByText('live', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(1);
  });

  it('says that the server cannot be reached where it does not renew the session, and goes on when it does again', async () => {
    let isSpent = true;
    const frozen = Promise.withResolvers<void>();
    await page.route('**/graphql', (route) =>
      isSpent ? route.fulfill({ status: 401, json: { error: 'unauthenticated', message: 'spent' } }) : route.continue(),
    );
    await page.route('**/auth/refresh', async (route) => {
      await frozen.promise;
      await route.abort();
    });
    await page.evaluate(`{
      const deadlines = [];
      AbortSignal.timeout = () => {
        const deadline = new AbortController();
        deadlines.push(deadline);
        return deadline.signal;
      };
      globalThis.passDeadlines = () => {
        for (const deadline of deadlines) deadline.abort(new DOMException('too late', 'TimeoutError'));
      };
    }`);
    const renewing = page.waitForRequest('**/auth/refresh');
    await goTo('Schedules');
    await renewing;
    await page.evaluate('passDeadlines()');
    await page.getByText('The server cannot be reached.').waitFor();
    isSpent = false;
    frozen.resolve();
    await goTo('Hooks');
    await page.getByText('Nobody is told of runs').waitFor();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(1);
  });

  it('goes on, and says so, where the server takes no more requests for a while and has not ended the sessions', async () => {
    await page.route('**/auth/logout', (route) =>
      route.fulfill({ status: 429, json: { error: 'rate_limited', message: 'later' } }),
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('The server did not confirm the end of the session').waitFor();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(1);
  });

  it('leaves nothing of the account on the page when the session ends', async () => {
    await goTo('Account');
    await page.getByRole('heading', { name: 'Personal tokens' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('This server shows its runs to those who are signed in.').waitFor();
    expect(await page.getByRole('heading', { name: 'Personal tokens' }).count()).toBe(0);
  });

  it('starts one run by two clicks', async () => {
    const clicked = Promise.withResolvers<void>();
    let started = 0;
    await page.route('**/graphql', async (route) => {
      if ((route.request().postDataJSON() as { operationName?: string }).operationName === 'Trigger') {
        started += 1;
        await clicked.promise;
      }
      await route.continue();
    });
    await goTo('Trigger');
    await page.getByText('The file is in order.').waitFor();
    await page.getByRole('button', { name: 'Start it' }).dblclick();
    clicked.resolve();
    await page.waitForURL(/\/dashboard\/runs\//u);
    expect(started).toBe(1);
  });

  it('takes no login by itself that comes when the one that this tab has begun was given up', async () => {
    const { access_token: access, refresh_token: refresh } = await tokensOf(server, 'eve');
    const context = await browser.newContext();
    const tab = await context.newPage();
    await tab.clock.install();
    await tab.goto(`${server.url}/dashboard/`);
    await tab.getByRole('banner').getByRole('button', { name: 'Sign in' }).click();
    await tab.getByLabel('Login name').waitFor();
    await tab.clock.fastForward('11:00');
    await tab.goto(`${server.url}/dashboard/auth/callback#access_token=${access}&refresh_token=${refresh}`);
    await tab.getByText('Go on only if that is you').waitFor();
    expect(await tab.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
    await context.close();
  });
});

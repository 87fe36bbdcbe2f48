/** The pages of the dashboard beside those of runs, in a browser against a whole server. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packFolder } from '@penstock/extension';
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { complaintsOf, obstaclesOf, pipeline, signIn, tokensOf } from '../support/dashboard.ts';
import { startServer, temporaryFolder, trigger, TRIGGER, type RunningServer } from '../support/server.ts';

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

  it('marks the page that is open among its links, the runs at its root as well', async () => {
    const marked = page.locator('nav [aria-current=page]');
    await open('/');
    await expect.poll(() => marked.allTextContents()).toEqual(['Runs']);
    await goTo('/pipelines?name=any');
    await expect.poll(() => marked.allTextContents()).toEqual(['Pipelines']);
    await goTo('/compare?a=1&b=2');
    await expect.poll(() => marked.allTextContents()).toEqual([]);
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
    await page.locator('summary', { hasText: 'Deliveries' }).click();
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

    await page.getByRole('link', { name: 'People' }).click();
    await page.getByText('Nobody is.').waitFor();
    await page.getByLabel('Login or id of a user').fill('bob');
    await page.getByRole('button', { name: 'Shut out' }).click();
    await page.getByRole('listitem').filter({ hasText: 'bob' }).waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Let in again' }).click();
    await page.getByText('Nobody is.').waitFor();

    await page.getByRole('link', { name: 'Dead letters' }).click();
    await page.getByText('None: in the last seven days').waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByLabel('Only what has').fill('user.suspend');
    await page.getByRole('cell', { name: 'user.suspend' }).first().waitFor();
    await page.getByLabel('Only what has').fill('pause');
    await page.getByRole('cell', { name: /pause/u }).first().waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await goTo(`/runs/${id}`);
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows an admin what hooks were not told of, and sends it again', async () => {
    const letter = {
      id: 'h_r_1',
      tenant: 'user/1',
      url: 'https://example.org/<b>hook</b>',
      event: 'run.completed',
      attempts: 24,
      endedAt: new Date(Date.now() - 3_600_000).toISOString(),
      error: 'it answered 500',
    };
    let isSent = false;
    // It takes three days until one is given up.
    await context.route('**/graphql', async (route) => {
      const query = String(route.request().postDataJSON()?.query);
      if (query.includes('adminRedrive')) isSent = true;
      if (query.includes('adminDeadLetters'))
        await route.fulfill({ json: { data: { adminDeadLetters: isSent ? [] : [letter] } } });
      else if (query.includes('adminRedrive')) await route.fulfill({ json: { data: { adminRedrive: true } } });
      else await route.continue();
    });
    await open('/');
    await signIn(page, 'ada');
    await goTo('/admin/letters');
    await page.getByRole('cell', { name: 'https://example.org/<b>hook</b>' }).waitFor();
    await page.getByRole('cell', { name: 'it answered 500' }).getByText('24 attempts').waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('None: in the last seven days').waitFor();
    expect(complaints).toEqual([]);
  });

  it('names what a connected repository is read with, lets others work on it, takes it back, and shows them what they share', async () => {
    ada ??= (await tokensOf(server, 'ada'))['access_token'];
    const connected = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ada}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        query: 'mutation { connectRepository(provider: "git_host_a", repository: "acme/<i>shop</i>") { id } }',
      }),
    });
    expect(((await connected.json()) as { errors?: unknown }).errors).toBeUndefined();
    await open('/deliveries');
    await signIn(page, 'ada');
    await page.getByText('Read with what the server has', { exact: true }).click();
    await page.getByLabel(/^Name of a secret/u).fill('CLONE_TOKEN');
    await page.getByRole('button', { name: 'Read with it' }).click();
    await page.getByText('Read with the secret CLONE_TOKEN', { exact: true }).waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Take CLONE_TOKEN off' }).click();
    await page.getByText('Read with what the server has', { exact: true }).waitFor();
    await page.getByText('Who else may work on it').click();
    await page.getByText('Nobody but you.').waitFor();
    await page.getByLabel('Login or verified email').fill('Bob');
    await page.getByRole('combobox', { name: /^May/u }).selectOption('admin');
    await page.getByRole('button', { name: 'Let in', exact: true }).click();
    await page.getByRole('listitem').getByText('bob', { exact: true }).waitFor();
    expect(await obstaclesOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'bob');
    await goTo('/deliveries');
    const shared = page.getByRole('region', { name: 'Shared with you' });
    await shared.getByText('acme/<i>shop</i>').waitFor();
    await shared.getByText('Who else may work on it').click();
    await shared.getByLabel('Login or verified email').fill('carol');
    await shared.getByRole('button', { name: 'Let in', exact: true }).click();
    await shared.getByRole('button', { name: 'Take back the access of carol' }).click();
    await shared.getByText('carol', { exact: true }).waitFor({ state: 'detached' });
    expect(await obstaclesOf(page)).toEqual([]);
    await shared.getByRole('button', { name: 'Leave' }).click();
    await shared.waitFor({ state: 'detached' });
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

  it('draws of a thousand kept files, of the history and of the tests a part at a time, and all of them when asked', async () => {
    const files = 'for n in $(seq 1100); do echo > f$n; done';
    const cases = 'for n in $(seq 150); do echo "<testcase name=\\"t$n\\"><failure/></testcase>"; done';
    const echoes = Object.fromEntries(Array.from({ length: 140 }, (_, n) => [`s${n}`, { run: 'true' }]));
    const id = await trigger(
      server,
      pipeline('much', {
        a: { run: files, artifacts: ['f*'] },
        b: {
          run: `{ echo '<testsuite name="s">'; ${cases}; echo '</testsuite>'; } > j.xml`,
          reports: { junit: ['j.xml'] },
        },
        ...echoes,
      }),
    );
    await open(`/runs/${id}`);
    await signIn(page, 'ada');
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor({ timeout: 90_000 });

    await page.getByText('Files and outputs').click();
    const part = page.locator('.extras details[open]');
    const rows = part.locator('tbody tr, .cards li');
    const counts: number[] = [];
    const all = async (): Promise<number> => {
      await rows.first().waitFor();
      counts.push(await rows.count());
      const more = part.getByRole('button', { name: 'Show more' });
      while ((await more.count()) > 0) {
        const before = await rows.count();
        await more.click();
        await rows.nth(before).waitFor();
      }
      return await rows.count();
    };
    expect([await all(), counts.pop()]).toEqual([1_100, 500]);
    await page.getByText('Files and outputs').click();
    await page.getByText('Tests', { exact: true }).click();
    expect([await all(), counts.pop()]).toEqual([150, 100]);
    await page.getByText('Tests', { exact: true }).click();
    await page.getByText('History', { exact: true }).click();
    expect(await all()).toBeGreaterThan(240);
    expect(counts.pop()).toBe(200);
    const versions = await rows.locator('td:first-child').allTextContents();
    expect(versions).toEqual(versions.map((_, index) => String(index + 1)));
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

  it('renews a token before it runs out, tells the other tabs, and loads nothing anew for that', async () => {
    await context.clock.install();
    const id = await trigger(server, pipeline('kept', { a: { run: 'seq 1 100' } }));
    await open(`/runs/${id}`);
    await signIn(page, 'ada');
    const lines = page.locator('.log-count', { hasText: '100 lines' });
    await lines.waitFor();
    // Of a run that is over the stream is too: whatever asks for it again has forgotten what it had.
    await page.locator('.live.is-ended').waitFor();
    const other = await context.newPage();
    await other.goto(`${server.url}/dashboard/runs/${id}`);
    await other.getByRole('button', { name: 'Sign out' }).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const renewed = page.waitForResponse((response) => response.url().endsWith('/auth/refresh'));
    // A word between tabs is heard by every page of the browser that listens for it.
    await other.evaluate(`
      window.told = new Promise((resolve) => {
        new BroadcastChannel('penstock.session').addEventListener('message', ({ data }) => resolve(data.kind));
      });
      0`);
    await page.evaluate("document.querySelector('.log').dataset.own = 'the same'");
    await context.clock.fastForward('14:30');
    expect((await renewed).status()).toBe(200);
    expect(await other.evaluate('window.told')).toBe('have');
    await page.getByRole('button', { name: 'Back in time' }).click();
    await page.getByRole('slider').waitFor();
    expect(await page.evaluate("document.querySelector('.log').dataset.own")).toBe('the same');
    expect(asked.filter((path) => path.endsWith('/logs'))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('shows hostile names and a hostile readme as the texts that they are', async () => {
    const evil = '<img src=x onerror=document.title="owned"><script>document.title="owned"</script>';
    const file = JSON.stringify({
      pipeline: { name: `${evil} \u05D0\u05D1\u05D2` },
      inputs: { who: { default: `${evil}\u202Eback` } },
      stages: { [evil.slice(0, 120)]: { run: 'true' }, ['a'.repeat(128)]: { run: 'exit 1' } },
    });
    const { data, errors } = await server.graphql<{ triggerPipeline: { run: { id: string } } | null } | null>(TRIGGER, {
      yaml: file,
      waitSeconds: 60,
    });
    expect(errors).toBeUndefined();
    await publishExtension(
      server,
      `# ${evil}\n\n[a](javascript:alert(1)) ![b](https://x.invalid/i.png) <b onclick=x>c</b>\n`,
    );
    await open('/');
    await signIn(page, 'ada');
    for (const path of [
      '/',
      '/pipelines',
      `/pipelines?name=${encodeURIComponent(`${evil} \u05D0\u05D1\u05D2`)}`,
      `/runs?pipeline=${encodeURIComponent(evil)}`,
      `/runs/${data?.triggerPipeline?.run.id}`,
      `/runs/${data?.triggerPipeline?.run.id}?view=table`,
      `/runs/${data?.triggerPipeline?.run.id}?view=time&at=3`,
      '/extensions/utility/evil',
      '/admin/audit',
    ]) {
      await goTo(path);
      await page.locator('main h1').first().waitFor();
      await page.getByText('Loading', { exact: false }).waitFor({ state: 'detached' });
      expect(
        await page.locator('main img, main script, main b, main [onclick], main [href^="javascript"]').count(),
      ).toBe(0);
      expect(await page.title()).not.toBe('owned');
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
    await goTo('/extensions/utility/evil');
    await page.locator('.readme').getByText('<script>').first().waitFor();
    await goTo('/runs');
    await page.getByRole('link', { name: '\u05D0\u05D1\u05D2' }).waitFor();
    await goTo('/pipelines?name=a%E2%80%AEb');
    await page.locator('main h1', { hasText: 'a<U+202E>b' }).waitFor();
    expect(await page.title()).toBe('a<U+202E>b · Penstock');
    await page.route('**/graphql', async (route) => {
      if (!(route.request().postData() ?? '').includes('"Rerun"')) return await route.continue();
      await route.fulfill({ json: { data: null, errors: [{ message: 'is \u202Enot\u202C yours' }] } });
    });
    await goTo(`/runs/${data?.triggerPipeline?.run.id}`);
    await page.getByRole('button', { name: 'Run again', exact: true }).click();
    await page.locator('.notice bdi', { hasText: 'is <U+202E>not<U+202C> yours' }).waitFor();
    expect(complaints).toEqual([]);
  });
});

const PUBLISH = 'mutation ($hash: String!) { publishExtension(packageHash: $hash) { created } }';

/** `utility/evil`, with this readme. */
async function publishExtension(server: RunningServer, readme: string): Promise<void> {
  const folder = temporaryFolder('penstock-readme-');
  try {
    const manifest = 'id: utility/evil\nversion: 1.0.0\ndescription: "<b>evil</b>"\nrun: "true"\n';
    writeFileSync(join(folder.path, 'extension.yaml'), manifest);
    writeFileSync(join(folder.path, 'README.md'), readme);
    const bytes = Buffer.from((await packFolder(folder.path)).bytes);
    const hash = createHash('sha256').update(bytes).digest('hex');
    const uploaded = await fetch(`${server.url}/registry/packages/${hash}`, {
      method: 'PUT',
      body: bytes,
      headers: { 'content-type': 'application/gzip', authorization: `Bearer ${server.apiKey}` },
    });
    expect(uploaded.status).toBe(201);
    expect(await server.graphql(PUBLISH, { hash })).not.toHaveProperty('errors');
  } finally {
    folder.remove();
  }
}

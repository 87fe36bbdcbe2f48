/** The dashboard in a browser, against a whole server: what a person does there, and what others may have put into it. */
import { writeFileSync } from 'node:fs';
import { chromiumFor, startProxy } from '@penstock/testkit';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { complaintsOf, obstaclesOf, pipeline, signIn, tokensOf } from '../support/dashboard.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';

const browserPath = chromiumFor('the dashboard in a browser');

describe.skipIf(browserPath === undefined)('the dashboard in a browser', { timeout: 120_000 }, () => {
  let server: RunningServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  const folder = temporaryFolder('penstock-dashboard-');

  beforeAll(async () => {
    [server, browser] = await Promise.all([
      startServer({ env: { SERVICE_ADMINS: 'sub:ada' } }),
      chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([browser.close(), server.stop()]);
    folder.remove();
  });
  beforeEach(async () => {
    context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
    page.setDefaultTimeout(30_000);
    complaints = complaintsOf(page);
  });
  afterEach(async () => {
    await context.close();
  });

  async function open(path: string): Promise<void> {
    await page.goto(`${server.url}${path}`);
    await page.locator('main').waitFor();
  }

  /** A stage that goes on until this is called. */
  function gate(name: string): { readonly command: string; pass(): void } {
    const path = `${folder.path}/${name}`;
    return {
      command: `until [ -e ${path} ]; do sleep 0.1; done`,
      pass: () => writeFileSync(path, ''),
    };
  }

  const node = (name: string) => page.locator('.node', { has: page.locator('.node-name', { hasText: name }) });
  const line = (text: string) => page.locator('.log-text', { hasText: text });

  it('shows runs to whoever may read them, and leads who signs in back to the page where that was', async () => {
    const id = await trigger(server, pipeline('read', { a: { run: 'echo said by a' } }));
    await open('/dashboard/');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('main:focus').waitFor();
    await page.keyboard.press('/');
    await page.locator('#filter-pipeline:focus').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#filter-pipeline:not(:focus)').waitFor();
    await page.getByRole('link', { name: 'read', exact: true }).press('Enter');
    await page.locator('main:focus').waitFor();
    await page.getByRole('status').filter({ hasText: '· Penstock' }).waitFor({ state: 'attached' });
    await node('a').waitFor();
    await page.getByText('This server shows logs to those who are signed in.').waitFor();
    await signIn(page, 'ada');
    expect(new URL(page.url()).pathname).toBe(`/dashboard/runs/${id}`);
    expect(page.url()).not.toContain('token');
    await line('said by a').waitFor();
    // No storage of the browser has heard of a token, and another tab of it is signed in.
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    expect(kept).toBe('[{},{},""]');
    const other = await context.newPage();
    await other.goto(`${server.url}/runs/${id}`);
    await other.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(new URL(other.url()).pathname).toBe(`/dashboard/runs/${id}`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await other.getByRole('button', { name: 'Sign in' }).first().waitFor();
    await page.getByRole('button', { name: 'Sign in' }).first().waitFor();
  });

  it('asks before it takes a login that this tab has not begun', async () => {
    const { access_token: access, refresh_token: refresh } = await tokensOf(server, 'eve');
    await open(`/dashboard/auth/callback#access_token=${access}&refresh_token=${refresh}`);
    await page.getByText('Go on only if that is you').waitFor();
    expect(page.url()).not.toContain('token');
    await page.getByRole('button', { name: 'Forget it' }).click();
    await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).waitFor();
  });

  it('follows a run live: its row, its stages, its log, its approval and its end', async () => {
    await open('/dashboard/');
    await signIn(page, 'ada');
    const wait = gate('live');
    const id = await trigger(
      server,
      pipeline('live', {
        build: { run: `echo first line\n${wait.command}\necho last line` },
        check: { after: 'build', approval: { message: 'Really?' } },
        deploy: { after: 'check', run: 'echo deployed' },
      }),
    );
    await page.getByRole('link', { name: 'live', exact: true }).click();
    expect(new URL(page.url()).pathname).toBe(`/dashboard/runs/${id}`);
    await line('first line').waitFor();
    await node('build').getByRole('img', { name: 'running' }).waitFor();
    wait.pass();
    await line('last line').waitFor();
    await node('check').click();
    await page.getByPlaceholder('Comment').fill('looks good');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('approved', { exact: false }).first().waitFor();
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
    await node('deploy').click();
    await line('deployed').waitFor();
    expect(new URL(page.url()).searchParams.get('stage')).toBe('deploy');
    expect(complaints).toEqual([]);
  });

  it('cancels a run, and runs again what failed and what comes after a stage', async () => {
    await open('/dashboard/');
    await signIn(page, 'ada');
    const endless = gate('never');
    await trigger(server, pipeline('stop', { a: { run: endless.command } }));
    await page.getByRole('link', { name: 'stop', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel' }).press('Enter');
    // Or what the server says in place of it.
    expect(await page.locator('.notice').first().textContent()).toContain('Cancelled.');
    await page.locator('.run-head .status', { hasText: 'cancelled' }).waitFor();
    await page.locator('main:focus').waitFor();

    const first = await trigger(
      server,
      pipeline('again', { good: { run: 'true' }, bad: { after: 'good', run: 'exit 3' } }),
    );
    await page.getByRole('banner').getByRole('link', { name: 'Runs' }).click();
    await page.getByRole('link', { name: 'again', exact: true }).click();
    await page.getByText('exit code 3', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Run again what failed' }).click();
    await page.waitForURL((url) => url.pathname.startsWith('/dashboard/runs/') && !url.pathname.endsWith(first));
    await page.getByRole('link', { name: 'an earlier run' }).waitFor();
    await node('good').click();
    await page.getByText('from the run before').waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows what is hostile as text: scripts, cursor moves, marks that turn the direction, ten megabytes in a line', async () => {
    const script = '<script>document.title="owned"</script><img src=x onerror=document.title="owned">';
    const id = await trigger(
      server,
      pipeline('hostile', {
        evil: {
          run: [
            `echo '${script}'`,
            String.raw`printf 'seen\033[2J\033[1;1H\033]0;owned\007 and \033[31mred\033[0m\n'`,
            String.raw`printf 'abc\342\200\256def\n'`,
            String.raw`printf '10%%\r50%%\r100%%\n'`,
            "head -c 10000000 /dev/zero | tr '\\0' x",
            'echo',
            'echo the end',
          ].join('\n'),
        },
      }),
    );
    await open(`/dashboard/runs/${id}`);
    await signIn(page, 'ada');
    await page.locator('.log-line').first().waitFor();
    // Of a stage that is still running the end is shown.
    await page.keyboard.press('Home');
    await line(script).waitFor();
    expect(await line('seen').textContent()).toBe('seen and red');
    expect(await line('abc').textContent()).toBe('abc<U+202E>def');
    expect(await line('100%').textContent()).toBe('100%');
    await page.locator('.beyond').first().waitFor();
    await page.keyboard.press('End');
    await line('the end').waitFor();
    expect(await page.title()).toContain('hostile');
    expect(complaints).toEqual([]);
  });

  it('shows the marks that turn the direction in what a test has told of its failure', async () => {
    const report =
      '<testsuite name="s"><testcase name="t"><failure message="is &#x202E;not&#x202C; admin&#10;next"/></testcase></testsuite>';
    const id = await trigger(
      server,
      pipeline('told', { a: { run: `echo '${report}' > junit.xml\necho written`, reports: { junit: ['junit.xml'] } } }),
    );
    await open(`/dashboard/runs/${id}`);
    await signIn(page, 'ada');
    await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
    await node('a').click();
    await line('written').waitFor();
    await page.getByText('Tests', { exact: true }).click();
    expect(await page.locator('.cards pre').textContent()).toBe('is <U+202E>not<U+202C> admin\nnext');
  });

  it('goes on with a log after its connection was cut, without a gap and without a doubled line', async () => {
    const wait = gate('cut');
    const { access_token: access, refresh_token: refresh } = await tokensOf(server, 'ada');
    const id = await trigger(server, pipeline('cut', { a: { run: `seq 1 200\n${wait.command}\nseq 201 400` } }));
    const proxy = await startProxy(Number(new URL(server.url).port));
    try {
      const through = server.url.replace(/:\d+$/u, `:${proxy.port}`);
      await page.goto(`${through}/dashboard/auth/callback#access_token=${access}&refresh_token=${refresh}`);
      await page.getByRole('button', { name: 'That is me, go on' }).click();
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      await page.getByRole('link', { name: 'cut', exact: true }).click();
      await page.locator('.log-count', { hasText: '200 lines' }).waitFor();
      proxy.shut();
      await page.locator('.live.is-broken').waitFor();
      wait.pass();
      proxy.cut(); // New connections pass again.
      await page.locator('.log-count', { hasText: '400 lines' }).waitFor();
      await page.locator('.run-head .status', { hasText: 'passed' }).waitFor();
      await page.getByRole('button', { name: 'Copy' }).click();
      await page.getByText('Copied.').waitFor();
      const copied = await page.evaluate('navigator.clipboard.readText()');
      expect(copied).toBe(Array.from({ length: 400 }, (_, index) => `${index + 1}`).join('\n'));
      expect(new URL(page.url()).pathname).toBe(`/dashboard/runs/${id}`);
    } finally {
      await proxy.stop();
    }
  });

  it('has nothing that would keep somebody out, in light on a phone and in dark on a wide screen', async () => {
    await trigger(server, pipeline('seen', { a: { run: 'echo hi; exit 3' }, b: { after: 'a', run: 'true' } }));
    await open('/dashboard/');
    await signIn(page, 'ada');
    const look = async (): Promise<void> => {
      expect(complaints).toEqual([]);
      expect(await obstaclesOf(page)).toEqual([]);
    };
    await page.getByRole('link', { name: 'seen', exact: true }).waitFor();
    await look();
    await page.getByRole('link', { name: 'seen', exact: true }).click();
    await line('hi').waitFor();
    for (const view of ['Table', 'Time', 'Graph']) await page.getByRole('button', { name: view, exact: true }).click();
    for (const details of ['Attempts and outputs', 'Files and outputs', 'Tests', 'History'])
      await page.getByText(details, { exact: true }).click();
    await page.getByText('No stage has kept a file').waitFor();
    await page.getByRole('group', { name: 'History' }).waitFor();
    await look();
    for (const [title, seen] of [
      ['Schedules', 'Nothing starts by itself'],
      ['Deliveries', 'Nothing was delivered'],
      ['Account', 'pipeline runs'],
      ['Trigger', 'The file is in order.'],
      ['Hooks', 'Nobody is told of runs'],
      ['Pipelines', 'p50'],
      ['Admin', 'No stage waits for a runner.'],
      ['Runner tokens', 'With one a machine becomes a runner'],
      ['Audit log', 'of the newest'],
      ['Extensions', 'downloads'],
    ] as const) {
      await page.getByRole('link', { name: title, exact: true }).click();
      await page.getByText(seen).first().waitFor();
      await look();
    }
    await page.locator('.cards a').first().click();
    await page.locator('.readme').waitFor();
    await look();
  });

  it('says what is wrong with a file while it is typed, and starts it once it is right', async () => {
    await open('/dashboard/trigger');
    await signIn(page, 'ada');
    const editor = page.getByRole('textbox', { name: 'Pipeline file' });
    const type = async (text: string): Promise<void> => {
      await editor.click();
      await page.keyboard.press('Control+A');
      await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
      await page.keyboard.press('Control+V');
    };
    await type('pipeline: {name: typed}\nstages:\n  a: {rum: echo}\n');
    await page.getByText('The file has mistakes.').waitFor();
    await page.getByRole('list', { name: 'What the server says' }).getByText("'rum'").waitFor();
    await page.getByRole('button', { name: 'line 3' }).first().click();
    await type(
      'pipeline: {name: typed}\ninputs:\n  who: {default: nobody}\nstages:\n  a:\n    run: echo "hello $INPUT_WHO"\n',
    );
    await page.getByText('The file is in order.').waitFor();
    await page.getByLabel('who').fill('ada');
    await page.getByRole('button', { name: 'Start it' }).click();
    await line('hello ada').waitFor();
    expect(complaints).toEqual([]);
  });

  it('leads to a line of a log, and finds one', async () => {
    const id = await trigger(server, pipeline('lines', { a: { run: 'seq 1 5000' } }));
    await open(`/dashboard/runs/${id}?stage=a&line=4000`);
    await signIn(page, 'ada');
    await page.locator('.log-line.marked', { hasText: '4000' }).waitFor();
    await page.keyboard.press('s');
    await page.keyboard.type('2345');
    await page.locator('.log-line.marked', { hasText: '2345' }).waitFor();
    await page.getByText('1 of 1').waitFor();
    // Of five thousand lines only those that are seen are there.
    expect(await page.locator('.log-line').count()).toBeLessThan(200);
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Follow the log').waitFor();
    expect(complaints).toEqual([]);
  });
});

/** The playground as it is served, and in a real browser where there is one. */
import { extname } from 'node:path';
import type { AddressInfo } from 'node:net';
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { API_KEY, makeWorld, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const PAGE = '/graphql/playground';
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

describe('the playground', () => {
  it('is 404 where it was not asked for', async () => {
    const app = await world.gateway();
    for (const url of [PAGE, `${PAGE}/assets/graphiql.js`]) {
      const response = await app.inject(url);
      expect([response.statusCode, response.json()]).toEqual([404, expect.objectContaining({ error: 'not_found' })]);
    }
  });

  it('is a page that refers to files of this server only, each with its type and cached for good', async () => {
    const app = await world.gateway({ playground: true });
    const page = await app.inject(PAGE);
    expect([page.statusCode, page.headers['content-type'], page.headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-store',
    ]);
    const references = [...page.body.matchAll(/(?:src|href)="([^"]*)"/gu)].map(([, url = '']) => url);
    expect(references).toHaveLength(7);
    for (const url of references) {
      const file = await app.inject(url);
      expect([url, file.statusCode, file.headers['cache-control']]).toEqual([
        url,
        200,
        'public, max-age=31536000, immutable',
      ]);
      expect(file.headers['content-type']).toBe(TYPES[extname(url)]);
      expect(file.rawPayload.length).toBeGreaterThan(50);
    }
    expect((await app.inject(`${PAGE}/assets/nothing.js`)).statusCode).toBe(404);
    expect((await app.inject(`${PAGE}/assets/..%2f..%2fpackage.json`)).statusCode).toBe(404);
  });

  it('the page alone has a wider policy: scripts, styles and requests of this server, no inline script, no eval, a new nonce each time', async () => {
    const app = await world.gateway({ playground: true });
    const [first, second] = [await app.inject(PAGE), await app.inject(PAGE)];
    const policy = String(first.headers['content-security-policy']);
    expect(policy.replace(/'nonce-[\w+/]+=*'/u, "'nonce'")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'nonce'; font-src data:; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(policy).not.toBe(second.headers['content-security-policy']);
    expect(first.headers).toMatchObject({ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' });
    const elsewhere = await app.inject('/');
    expect(elsewhere.headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
  });
});

const browserPath = chromiumFor('the playground in a browser');

describe.skipIf(browserPath === undefined)('the playground in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());

  it('runs a query, with a token from its headers editor, without an error or a breach of its policy, and asks nobody else', async () => {
    const app = await world.gateway({ playground: true, publicRead: false });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const origin = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const page = await browser.newPage();
    const complaints: string[] = [];
    const elsewhere: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) elsewhere.push(request.url());
    });
    await page.addInitScript({
      content:
        "addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile, lineNumber, sample }) => console.error('policy', violatedDirective, blockedURI, sourceFile, lineNumber, sample));",
    });
    await page.goto(`${origin}${PAGE}`);

    const replace = async (editor: string, text: string): Promise<void> => {
      await page.locator(`${editor} .CodeMirror`).click();
      await page.keyboard.press('Control+A');
      await page.keyboard.insertText(text);
    };
    await replace('.graphiql-query-editor', '{ health }');
    await page.getByRole('button', { name: /execute query/iu }).click();
    await page.locator('.result-window', { hasText: '"health": "ok"' }).waitFor();

    await replace('.graphiql-editor-tool .graphiql-editor:not(.hidden)', `{ "Authorization": "Bearer ${API_KEY}" }`);
    await replace('.graphiql-query-editor', '{ runs { id } }');
    await page.getByRole('button', { name: /execute query/iu }).click();
    await page.locator('.result-window', { hasText: '"runs": []' }).waitFor();

    // Its dialogs and its documentation come with styles of their own.
    await page
      .getByRole('button', { name: /documentation explorer/iu })
      .first()
      .click();
    await page.locator('.graphiql-doc-explorer').waitFor();
    await page
      .getByRole('button', { name: /settings/iu })
      .first()
      .click();
    await page.locator('.graphiql-dialog').waitFor();
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
    await page.close();
  });
});

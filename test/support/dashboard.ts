/** The dashboard in a browser: what its end-to-end tests and its pictures do with it alike. */
import { Browser as Client } from '@penstock/testkit';
import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import type { RunningServer } from './server.ts';

/** As this user, by the pages of the embedded provider. */
export async function signIn(page: Page, login: string): Promise<void> {
  await page.getByRole('banner').getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Login name').fill(login);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

type Stages = Readonly<Record<string, object>>;

export function pipeline(name: string, stages: Stages): string {
  return JSON.stringify({ pipeline: { name }, stages });
}

/** What the browser complains of, breaches of the page's policy included. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    // Who is not signed in is told so by the stream of changes; and every browser asks for an icon of the login's pages.
    const isExpected = message.text().includes('401 (Unauthorized)') || message.location().url.endsWith('/favicon.ico');
    if ((message.type() === 'error' || message.type() === 'warning') && !isExpected) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return complaints;
}

/** Of each look, light on a phone and dark on a wide screen, what axe finds that is serious and what is wider than the screen. */
export async function obstaclesOf(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const [colorScheme, width] of [
    ['light', 390],
    ['dark', 1_280],
  ] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(axe.source);
    // It names every element that passes as well, unless only the others are asked for.
    const { violations } = (await page.evaluate(`axe.run({ resultTypes: ['violations'] })`)) as AxeResults;
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    found.push(
      ...serious.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${page.url()} ${colorScheme} ${id}: ${html}`)),
    );
    // Nothing is to be scrolled to the side but what scrolls by itself.
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth'));
    if (wide > width) found.push(`${page.url()} is ${wide} wide on a screen of ${width}`);
  }
  return found;
}

export async function tokensOf(server: RunningServer, login: string): Promise<Record<string, string>> {
  const client = new Client();
  const who = await client.follow(`${server.url}/auth/web/login`);
  const identified = await client.submit(who, { login });
  const isArrival = (url: string): boolean => new URL(url).pathname === '/auth/callback';
  const { url } = await client.submit(identified, { decision: 'allow' }, isArrival);
  return Object.fromEntries(new URLSearchParams(new URL(url).hash.slice(1)));
}

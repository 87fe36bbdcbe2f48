/** What the dashboard costs a browser: its figures, for the benchmark that prints them and the test that bounds them. */
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { pipeline, signIn } from './dashboard.ts';
import { trigger, TRIGGER, type RunningServer } from './server.ts';

export const STAGES = 2_000;

/** Bytes of the scripts that the page itself names, compressed: what is loaded before anything is seen. */
export async function firstScriptBytes(server: RunningServer): Promise<number> {
  const html = await (await fetch(`${server.url}/dashboard/`)).text();
  const scripts = [...html.matchAll(/src="([^"]+\.js)"/gu)].map(([, path = '']) => path);
  const bodies = await Promise.all(
    scripts.map(async (path) => Buffer.from(await (await fetch(`${server.url}${path}`)).arrayBuffer())),
  );
  return bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
}

/** Milliseconds from the click on the address to the first thing that is seen. */
export async function firstPaintMs(server: RunningServer, page: Page): Promise<number> {
  await page.goto(`${server.url}/dashboard/`);
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  return Number(
    await page.evaluate(`new Promise((resolve) => {
      new PerformanceObserver((list) => {
        const paint = list.getEntriesByName('first-contentful-paint')[0];
        if (paint !== undefined) resolve(paint.startTime);
      }).observe({ type: 'paint', buffered: true });
    })`),
  );
}

/** A run of very many stages that is soon over: the first fails, and with it goes what comes after. */
export async function runOfManyStages(server: RunningServer): Promise<string> {
  const others = Array.from({ length: STAGES - 1 }, (_, index) => [`s${index}`, { after: 'first', run: 'true' }]);
  const file = pipeline('many', { first: { run: 'exit 1' }, ...Object.fromEntries(others) });
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
    yaml: file,
    waitSeconds: 120,
  });
  return data.triggerPipeline.run.id;
}

/** Milliseconds from a press to the next picture: of a stage that is chosen in the table, of each view, and of a key. */
export async function interactionsMs(server: RunningServer, page: Page, id: string): Promise<Record<string, number>> {
  await page.goto(`${server.url}/dashboard/runs/${id}`);
  await signIn(page, 'ada');
  await page.getByRole('group', { name: 'Table of the stages' }).waitFor();
  const pressed = async (selector: string): Promise<number> =>
    Number(
      await page.evaluate(`new Promise((resolve, reject) => {
        const target = ${selector};
        if (!target) return reject(new Error('there is nothing to press'));
        const began = performance.now();
        target.click();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
      })`),
    );
  const button = (name: string): string =>
    `[...document.querySelectorAll('.views button')].find((each) => each.textContent === '${name}')`;
  const rows = `document.querySelectorAll('.stage-table tbody button')`;
  /** Of the rows that are drawn where one has scrolled to, one in the midst. */
  const chosenAt = async (share: number): Promise<number> => {
    await page.evaluate(
      `{ const box = document.querySelector('.table-frame'); box.scrollTop = box.scrollHeight * ${share}; }`,
    );
    await page.locator(`.stage-table tbody tr[aria-rowindex="${Math.round(STAGES * share)}"]`).waitFor();
    return await pressed(`${rows}[Math.floor(${rows}.length / 2)]`);
  };
  return {
    'a stage chosen in the table': Math.max(await chosenAt(0.5), await chosenAt(0.75)),
    'the view of times': await pressed(button('Time')),
    'the table': await pressed(button('Table')),
    'the graph': await pressed(button('Graph')),
  };
}

/** What a long log costs who opens it: until its first lines are seen, until all are there, and the longest task of the browser while it is scrolled. */
export interface LongLog {
  readonly firstMs: number;
  readonly allMs: number;
  readonly longestTaskMs: number;
}

const SCROLLS = 120;
const ALL_MS_MAX = 240_000;

export async function longLogMs(server: RunningServer, page: Page, lines: number): Promise<LongLog> {
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
    yaml: pipeline('long', { a: { run: `seq 1 ${lines}` } }),
    waitSeconds: 120,
  });
  await page.goto(`${server.url}/dashboard/`);
  await signIn(page, 'ada');
  const began = performance.now();
  await page.locator(`a[href$="/runs/${data.triggerPipeline.run.id}"]`).click();
  await page.locator('.log-line').first().waitFor();
  const firstMs = performance.now() - began;
  const all = page.locator('.log-count', { hasText: `${lines.toLocaleString('en')} lines` });
  await all.waitFor({ timeout: ALL_MS_MAX });
  const allMs = performance.now() - began;
  // Tasks of less than 50 ms are not told.
  const longestTaskMs = Number(
    await page.evaluate(`(async () => {
      const tasks = [0];
      const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
      observer.observe({ type: 'longtask' });
      const box = document.querySelector('.log-box');
      for (let index = 0; index < ${SCROLLS}; index += 1) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        // By turns a little and very far.
        if (index % 2 === 0) box.scrollTop += 400;
        else box.scrollTop = ((index * 37) % ${SCROLLS}) / ${SCROLLS} * box.scrollHeight;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
      observer.disconnect();
      return Math.max(...tasks);
    })()`),
  );
  return { firstMs, allMs, longestTaskMs };
}

/** Megabytes that the scripts of the page hold after a run has written so many lines while it was watched. */
export async function liveRunMb(server: RunningServer, page: Page, lines: number): Promise<number> {
  await page.goto(`${server.url}/dashboard/`);
  await signIn(page, 'ada');
  const id = await trigger(server, pipeline('fast', { a: { run: `seq 1 ${lines}` } }));
  await page.locator(`a[href$="/runs/${id}"]`).click();
  await page.locator('.log-count', { hasText: `${lines.toLocaleString('en')} lines` }).waitFor({ timeout: 120_000 });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return usedSize / 1024 / 1024;
}

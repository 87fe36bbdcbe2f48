/** The dashboard in a browser: what is loaded, when something is seen, how soon a press shows, and what an hour of lines takes. */
import { chromiumFor } from '@penstock/testkit';
import { chromium } from 'playwright-core';
import {
  firstPaintMs,
  firstScriptBytes,
  interactionsMs,
  liveRunMb,
  longLogMs,
  runOfManyStages,
  STAGES,
} from '../support/dashboard-budgets.ts';
import { startServer } from '../support/server.ts';

/** About what a run writes in an hour that writes fifty lines a second. */
const LINES = 200_000;
const LONG_LOG_LINES = 1_000_000;
const PAINTS = 5;

export async function benchDashboard(): Promise<string[]> {
  const server = await startServer();
  try {
    const lines = [`script at first load, compressed: ${((await firstScriptBytes(server)) / 1024).toFixed(1)} KiB`];
    const executablePath = chromiumFor('the dashboard in a browser');
    if (executablePath === undefined) return [...lines, 'no chromium is on the PATH: nothing else was measured'];
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    try {
      const paints: number[] = [];
      for (let count = 0; count < PAINTS; count += 1) {
        const page = await browser.newPage();
        paints.push(await firstPaintMs(server, page));
        await page.close();
      }
      const middle = paints.toSorted((a, b) => a - b)[Math.floor(PAINTS / 2)] ?? 0;
      lines.push(`first paint: ${middle.toFixed(0)} ms (median of ${PAINTS})`);
      const id = await runOfManyStages(server);
      const page = await browser.newPage();
      for (const [what, ms] of Object.entries(await interactionsMs(server, page, id)))
        lines.push(`a press with ${STAGES.toLocaleString('en')} stages, ${what}: ${ms.toFixed(0)} ms`);
      await page.close();
      const reader = await browser.newPage();
      const { firstMs, allMs, longestTaskMs } = await longLogMs(server, reader, LONG_LOG_LINES);
      lines.push(
        `a log of ${LONG_LOG_LINES.toLocaleString('en')} lines: its first lines after ${firstMs.toFixed(0)} ms, all after ${(allMs / 1_000).toFixed(1)} s, longest task while it is scrolled ${longestTaskMs === 0 ? 'below 50' : longestTaskMs.toFixed(0)} ms`,
      );
      await reader.close();
      const live = await browser.newPage();
      const mb = await liveRunMb(server, live, LINES);
      lines.push(`memory of the page after ${LINES.toLocaleString('en')} lines, live: ${mb.toFixed(1)} MiB`);
      return lines;
    } finally {
      await browser.close();
    }
  } finally {
    await server.stop();
  }
}

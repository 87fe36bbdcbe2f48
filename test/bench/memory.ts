/** Memory per live run: 10,000 runs that wait for a runner, in a scheduler of its own. */
import { driveRuns, makeDependencies } from './dependencies.ts';

const RUNS = 9_900;
const CREATES_IN_FLIGHT = 100;

export async function benchMemory(): Promise<string[]> {
  const around = await makeDependencies();
  try {
    const driver = driveRuns(around.bus);
    const yaml = [
      'pipeline:',
      '  name: waiting',
      'stages:',
      '  a: { run: "true", runs_on: [nobody] }',
      '  b: { run: "true", after: a }',
      '  c: { run: "true", after: b }',
    ].join('\n');
    for (let index = 0; index < 100; index++) await driver.create(yaml);
    const before = settledMemory();
    for (let index = 0; index < RUNS; index += CREATES_IN_FLIGHT) {
      await Promise.all(Array.from({ length: CREATES_IN_FLIGHT }, () => driver.create(yaml)));
    }
    const after = settledMemory();
    const each = (end: number, start: number): string => `${((end - start) / RUNS / 1024).toFixed(1)} KiB`;
    return [
      `${RUNS} waiting three-stage runs: ${each(after.rss, before.rss)} of process memory, ${each(after.heap, before.heap)} of heap each (target: at most 20 KB of process memory)`,
    ];
  } finally {
    await around.close();
  }
}

function settledMemory(): { readonly rss: number; readonly heap: number } {
  (globalThis as { gc?: () => void }).gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed };
}

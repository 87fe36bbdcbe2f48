/** Memory per live run: 10,000 small and 200 large runs that wait for a runner, and 10,000 that wait for people, in schedulers of their own. */
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { driveRuns, makeDependencies, type RunDriver } from './dependencies.ts';

const RUNS = 9_700;
const GATES = 10_000;
/** One key may have 10,000 live runs. */
const KEYS = 2;
const LARGE_RUNS = 200;
const LARGE_STAGES = 2_000;
const CREATES_IN_FLIGHT = 100;
/** Documents are made and written for some seconds yet: memory is settled when it moves by no more than this in each of so many seconds. */
const SETTLED_BYTES = 256 * 1024;
const SETTLED_SECONDS = 3;

export async function benchMemory(): Promise<string[]> {
  return [...(await waitingRuns()), ...(await openGates())];
}

async function waitingRuns(): Promise<string[]> {
  const around = await makeDependencies();
  try {
    const driver = driveRuns(around.client);
    const yaml = [
      'pipeline:',
      '  name: waiting',
      'stages:',
      '  a: { run: "true", runs_on: [nobody] }',
      '  b: { run: "true", after: a }',
      '  c: { run: "true", after: b }',
    ].join('\n');
    for (let index = 0; index < 100; index++) await driver.create(yaml);
    const before = await settledMemory();
    await createMany(driver, RUNS, yaml);
    const after = await settledMemory();
    for (let index = 0; index < LARGE_RUNS; index++) await driver.create(largeFile());
    const withLarge = await settledMemory();
    return [
      `${RUNS} waiting three-stage runs: ${each(after.rss, before.rss, RUNS)} of process memory, ${each(after.heap, before.heap, RUNS)} of heap each (target: at most 20 KB of process memory)`,
      `${LARGE_RUNS} waiting runs of ${LARGE_STAGES} stages: ${each(withLarge.rss, after.rss, LARGE_RUNS)} of process memory, ${each(withLarge.heap, after.heap, LARGE_RUNS)} of heap each`,
    ];
  } finally {
    await around.close();
  }
}

async function openGates(): Promise<string[]> {
  const around = await makeDependencies();
  try {
    const driver = driveRuns(around.client, { keys: KEYS });
    const yaml = [
      'pipeline:',
      '  name: gates',
      'stages:',
      '  ok: { approval: { approvers: [ada], timeout: 7d } }',
      '  ship: { run: "true", after: ok }',
    ].join('\n');
    await createMany(driver, CREATES_IN_FLIGHT, yaml);
    const before = await settledMemory();
    await createMany(driver, GATES, yaml);
    const after = await settledMemory();
    return [
      // The process has room of those before: what it takes of the machine says nothing here.
      `${GATES} runs at an open gate: ${each(after.heap, before.heap, GATES)} of heap each`,
    ];
  } finally {
    await around.close();
  }
}

async function createMany(driver: RunDriver, count: number, yaml: string): Promise<void> {
  for (let index = 0; index < count; index += CREATES_IN_FLIGHT)
    await Promise.all(Array.from({ length: CREATES_IN_FLIGHT }, () => driver.create(yaml)));
}

function each(end: number, start: number, count: number): string {
  return `${((end - start) / count / 1024).toFixed(1)} KiB`;
}

function largeFile(): string {
  const stages = Array.from({ length: LARGE_STAGES }, (_, index) => `  s${index}: { run: "true", runs_on: [nobody] }`);
  return ['pipeline:', '  name: large', 'stages:', ...stages].join('\n');
}

export async function settledMemory(): Promise<{ readonly rss: number; readonly heap: number }> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let last = Infinity;
  for (let quiet = 0; ;) {
    collect();
    const { rss, heapUsed } = process.memoryUsage();
    quiet = Math.abs(last - heapUsed) < SETTLED_BYTES ? quiet + 1 : 0;
    if (quiet === SETTLED_SECONDS) return { rss, heap: heapUsed };
    last = heapUsed;
    await delay(1_000);
  }
}

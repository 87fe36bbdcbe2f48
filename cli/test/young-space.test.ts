import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const MIB = 1024 * 1024;

/** What a thread with a bound of its own takes for what it has just made, in a process started with this flag. */
function youngOfThread(flag: string): number {
  const churn = `
    const kept = [];
    for (let i = 0; i < 3_000_000; i += 1) kept[i % 200_000] = { i, in: [i] };
    const { space_size } = require('node:v8').getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    require('node:worker_threads').parentPort.postMessage(space_size);
  `;
  const program = `
    import { Worker } from 'node:worker_threads';
    const { leaveThreadsTheirYoungSpace } = await import(${JSON.stringify(new URL('../src/process/young-space.ts', import.meta.url).href)});
    leaveThreadsTheirYoungSpace(process.env);
    const worker = new Worker(${JSON.stringify(churn)}, { eval: true, execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 6 } });
    worker.on('message', (bytes) => console.log(bytes));
  `;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, NODE_OPTIONS: flag },
    encoding: 'utf8',
  });
  return Number(stdout);
}

it('a thread has the young space that it is given, whatever a server is started with', () => {
  const bytes = youngOfThread('--max-semi-space-size=8');
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(6 * MIB);
});

it('whoever sets a young space himself means all threads', () => {
  expect(youngOfThread('--max-semi-space-size=8 --max-semi-space-size=24')).toBeGreaterThan(6 * MIB);
});

import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

const worlds = 'test/simulation/**/*.long.test.ts';
/** Each loads the whole machine by itself, or has times of its own that others would take from it. */
const machine = [
  'libs/bus/test/cluster.long.test.ts',
  'test/chaos/**/*.long.test.ts',
  'test/cluster/handovers.long.test.ts',
  'test/cluster/straight-handovers.long.test.ts',
  'test/e2e/{crash,webhook-deliveries}.long.test.ts',
];

/**
 * What `npm run test:long` runs: schedules of chaos, crashes, thousands of seeds, and what else takes many
 * processes, much of a processor, or a program that is built first.
 * The last run several at a time, as those of `npm test` do, and behind them one file after the other of those that load the whole machine. The
 * worlds of the simulation have clocks of their own, and only need a processor: without arguments they run beside the others (see
 * bootstrap/test.js), on what those leave. A short sample of each stands in `npm test`.
 */
export default defineConfig({
  test: {
    setupFiles: ['./test/support/remove-made-folders.ts'],
    pool: 'forks',
    projects: [
      {
        extends: true,
        test: {
          name: 'services',
          include: [
            'libs/*/test/**/*.long.test.ts',
            'services/*/test/**/*.long.test.ts',
            'cli/test/**/*.long.test.ts',
            'deploy/**/*.long.test.ts',
            'test/**/*.long.test.ts',
          ],
          exclude: ['**/node_modules/**', worlds, ...machine],
          maxWorkers: Math.ceil(availableParallelism() * 1.5),
        },
      },
      // Without parallel files, and so behind those that have some.
      { extends: true, test: { name: 'machine', include: machine, fileParallelism: false } },
      {
        extends: true,
        test: {
          name: 'worlds',
          include: [worlds],
          setupFiles: ['./test/support/lower-priority.ts'],
          fileParallelism: false,
        },
      },
    ],
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    // What is waited for by looking may need a process that starts, on a machine that has much else to do: the default is a second.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 60_000,
  },
});

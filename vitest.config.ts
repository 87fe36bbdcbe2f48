import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { filesOfSharedProcesses } from './test/support/shared-process.ts';

const shared = filesOfSharedProcesses(import.meta.dirname);

/** What `npm test` runs. Tests that are long by nature are `*.long.test.ts`: see vitest.long.config.ts. */
export default defineConfig({
  test: {
    setupFiles: ['./test/support/remove-made-folders.ts'],
    // Child processes rather than threads: tests change directories, send signals and start brokers.
    pool: 'forks',
    // Most tests wait for another process or for a lease, so that a core has room for more than one of them. With two for each core whole
    // runs were no faster, and tests of browsers and clusters missed their times.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    projects: [
      {
        extends: true,
        test: {
          name: 'alone',
          include: [
            'libs/*/test/**/*.test.ts',
            'services/*/test/**/*.test.ts',
            'cli/test/**/*.test.ts',
            'deploy/**/*.test.ts',
            'test/**/*.test.ts',
          ],
          exclude: ['**/node_modules/**', '**/*.long.test.ts', ...shared],
        },
      },
      { extends: true, test: { name: 'shared', include: shared, isolate: false } },
    ],
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    // What is waited for by looking may need a process that starts, on a machine that has much else to do: the default is a second.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 60_000,
  },
});

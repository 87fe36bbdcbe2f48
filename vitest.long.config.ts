import { defineConfig } from 'vitest/config';

const worlds = 'test/simulation/**/*.long.test.ts';

/**
 * What `npm run test:long` runs: schedules of chaos, crashes, thousands of seeds. One file after the other, for most of them
 * load the whole machine by themselves. The worlds of the simulation have clocks of their own, and only need a processor: without arguments
 * they run beside the others (see bootstrap/test.js), on what those leave. A short sample of each stands in `npm test`.
 */
export default defineConfig({
  test: {
    setupFiles: ['./test/support/remove-made-folders.ts'],
    pool: 'forks',
    fileParallelism: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'machine',
          include: ['libs/*/test/**/*.long.test.ts', 'services/*/test/**/*.long.test.ts', 'test/**/*.long.test.ts'],
          exclude: ['**/node_modules/**', worlds],
        },
      },
      {
        extends: true,
        test: { name: 'worlds', include: [worlds], setupFiles: ['./test/support/lower-priority.ts'] },
      },
    ],
    testTimeout: 60_000,
    // What is waited for by looking may need a process that starts, on a machine that has much else to do: the default is a second.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 60_000,
  },
});

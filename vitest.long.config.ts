import { defineConfig } from 'vitest/config';

/**
 * What `npm run test:long` runs: schedules of chaos, crashes, thousands of seeds. One file after the other, for each of them
 * loads the whole machine by itself. A short sample of each stands beside it, in `npm test`.
 */
export default defineConfig({
  test: {
    include: ['libs/*/test/**/*.long.test.ts', 'services/*/test/**/*.long.test.ts', 'test/**/*.long.test.ts'],
    setupFiles: ['./test/support/remove-made-folders.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 60_000,
    // What is waited for by looking may need a process that starts, on a machine that has much else to do: the default is a second.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 60_000,
  },
});

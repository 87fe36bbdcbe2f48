import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'libs/*/test/**/*.test.ts',
      'services/*/test/**/*.test.ts',
      'cli/test/**/*.test.ts',
      'deploy/**/*.test.ts',
      'test/**/*.test.ts',
    ],
    // Child processes rather than threads: tests change directories, send signals and start brokers.
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

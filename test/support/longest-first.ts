/**
 * The order of test files: those that are known to be long begin first, so that no worker is left alone with one at the end. The
 * list is by hand; a file that is not in it is taken for short, and nothing breaks where one is missing or gone.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longest first, as measured on two cores. */
const LONG: readonly string[] = [
  'libs/bus/test/cluster.test.ts',
  'test/chaos/chaos.test.ts',
  'test/e2e/extensions.test.ts',
  'test/e2e/dashboard.test.ts',
  'test/cluster/stores.test.ts',
  'test/e2e/crash.test.ts',
  'test/e2e/serve.test.ts',
  'cli/test/login.test.ts',
  'test/e2e/webhook-deliveries.test.ts',
  'test/cluster/cluster.test.ts',
  'test/e2e/login.test.ts',
  'libs/store/test/mongodb-outages.test.ts',
  'services/webhook-ingest/test/deliveries.test.ts',
  'libs/store/test/mongodb-answers.test.ts',
  'services/webhook-ingest/test/statuses.test.ts',
  'services/runner/test/runner.test.ts',
  'libs/executor/test/guard.test.ts',
  'libs/store/test/mongodb-runs.test.ts',
  'libs/git/test/cache.test.ts',
  'libs/executor/test/process-executor.test.ts',
  'cli/test/run.test.ts',
  'cli/test/server.test.ts',
  'libs/git/test/fetch.test.ts',
  'libs/bus/test/lease.test.ts',
  'cli/test/real-server.test.ts',
  'cli/test/extension.test.ts',
  'test/e2e/webhook.test.ts',
  'libs/extension/test/package.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((each) => moduleId.endsWith(`/${each}`));
      return at < 0 ? LONG.length : at;
    };
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/**
 * The order of test files: those that are known to be long begin first, so that no worker is left alone with one at the end. The
 * list is by hand; a file that is not in it is taken for short, and nothing breaks where one is missing or gone. Files that share
 * processes stand together behind all others: vitest ends a shared process when the next file in line has one of its own.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The longest first, as measured on two cores; and those that mostly wait for something, as `fleet` and `borders`, between those that do not, so that
 * at no time there is work for more processors than there are, and at another for fewer.
 */
export const LONG: readonly string[] = [
  'test/cluster/backup.long.test.ts',
  'test/e2e/dashboard-pages.long.test.ts',
  'test/e2e/fleet.long.test.ts',
  'test/chaos/chaos.test.ts',
  'test/bench/borders.test.ts',
  'test/e2e/dashboard.test.ts',
  'test/cluster/handovers.test.ts',
  'test/e2e/fleet-network.long.test.ts',
  'test/e2e/serve.test.ts',
  'libs/bus/test/cluster.test.ts',
  'test/simulation/runs/simulation.test.ts',
  'cli/test/login.test.ts',
  'test/attacks/attacks.test.ts',
  'test/attacks/attacks.long.test.ts',
  'test/e2e/extensions.test.ts',
  'test/e2e/extensions.long.test.ts',
  'test/e2e/administration.test.ts',
  'test/cluster/cancelled-streams.long.test.ts',
  'test/cluster/stores.long.test.ts',
  'test/e2e/full-disk.long.test.ts',
  'test/e2e/crash.test.ts',
  'test/e2e/clone-secret.long.test.ts',
  'test/e2e/clone-secret.test.ts',
  'services/runner/test/taken-up.test.ts',
  'test/e2e/dashboard-budgets.long.test.ts',
  'libs/executor/test/guard.test.ts',
  'test/cluster/purge.long.test.ts',
  'test/e2e/examples.test.ts',
  'test/cluster/cluster.test.ts',
  'libs/executor-kubernetes/test/taken-up.test.ts',
  'test/e2e/many-tenants.long.test.ts',
  'test/e2e/access-command.test.ts',
  'libs/executor/test/removal.test.ts',
  'test/simulation/runs/mutations.test.ts',
  'libs/bus/test/lease.test.ts',
  'services/runner/test/runner.test.ts',
  'services/gateway/test/costly-reads.test.ts',
  'test/e2e/fair-slots.test.ts',
  'cli/test/run.test.ts',
  'test/cluster/service-start.test.ts',
  'cli/test/extension.test.ts',
  'cli/test/run-caches.test.ts',
  'test/mutate/mutants.test.ts',
  'libs/executor/test/process-executor.test.ts',
  'libs/extension/test/package.test.ts',
  'test/e2e/login.test.ts',
  'test/e2e/key-rotation.long.test.ts',
  'services/webhook-ingest/test/deliveries.test.ts',
  'services/gateway/test/access.test.ts',
  'test/e2e/artifacts.test.ts',
  'cli/test/server.test.ts',
  'services/webhook-ingest/test/statuses.test.ts',
  'test/e2e/hostile-sizes.long.test.ts',
  'cli/test/usage.test.ts',
  'libs/parse-pool/test/parse-pool.test.ts',
  'libs/store/test/mongodb-outages.test.ts',
  'services/webhook-ingest/test/stream-anew.long.test.ts',
  'libs/git/test/fetch.test.ts',
  'libs/pipeline/test/shell-injection.test.ts',
  'test/e2e/stopping.test.ts',
  'services/webhook-ingest/test/pull-requests.test.ts',
  'test/e2e/webhook.test.ts',
  'services/registry/test/log-archive.test.ts',
  'cli/test/admin.test.ts',
  'services/runner/test/result-first.test.ts',
  'cli/test/real-server.test.ts',
  'services/scheduler/test/journal-purge.test.ts',
  'services/webhook-ingest/test/hooks.test.ts',
  'cli/test/runs.test.ts',
  'test/e2e/registry.test.ts',
  'services/webhook-ingest/test/held-up.test.ts',
  'test/e2e/tenant-fleet.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((each) => moduleId.endsWith(`/${each}`));
      return at < 0 ? LONG.length : at;
    };
    const isShared = ({ project }: TestSpecification): number => (project.config.isolate ? 0 : 1);
    return files.toSorted(
      (a, b) => isShared(a) - isShared(b) || rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1),
    );
  }
}

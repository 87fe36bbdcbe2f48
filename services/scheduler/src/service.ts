/** `penstock service scheduler`: sets the streams up where they are missing, and owns its share of the partitions. */
import { ensureStreams } from '@penstock/bus';
import { retryUntilDone, runService } from '@penstock/service';
import { openStore, runCollections, RunsRepository } from '@penstock/store';
import { startScheduler } from './shell/scheduler.ts';

const PARTITIONS = 16;

export function runSchedulerService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'scheduler',
      keys: ['storeUrl', 'partitions', 'natsReplicas', 'runnerLeaseSecs', 'queueTimeout', 'logBytesMax'],
      async start({ settings, bus, log, stopping }) {
        const partitions = settings.partitions ?? PARTITIONS;
        const store = await retryUntilDone('opening the store', log, stopping, () =>
          openStore(settings.storeUrl, runCollections),
        );
        await retryUntilDone('setting the streams up', log, stopping, () =>
          ensureStreams(bus, { partitions, replicas: settings.natsReplicas }),
        );
        const scheduler = await retryUntilDone('joining', log, stopping, () =>
          startScheduler({
            bus,
            log,
            partitions,
            ledger: new RunsRepository(store),
            runnerLeaseMs: settings.runnerLeaseSecs * 1000,
            queueTimeoutMs: settings.queueTimeout,
            logBytesMax: settings.logBytesMax,
          }),
        );
        return {
          ready: () => store.ping(),
          drain: [
            ['scheduler', () => scheduler.close()],
            ['store', () => store.close()],
          ],
        };
      },
    },
    env,
  );
}

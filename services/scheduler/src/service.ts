/** `penstock service scheduler`: sets the streams up where they are missing, and owns its share of the partitions. */
import { warmParseThread } from '@penstock/parse-pool';
import { ensureStreams } from '@penstock/bus';
import { allAnswer, runService } from '@penstock/service';
import { auditCollections, openStore, runCollections, RunsRepository, StoredRetention } from '@penstock/store';
import { startScheduler } from './start.ts';

const PARTITIONS = 16;

export function runSchedulerService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'scheduler',
      keys: [
        'storeUrl',
        'partitions',
        'natsReplicas',
        'runnerLeaseSecs',
        'queueTimeout',
        'logBytesMax',
        'keySlots',
        'artifactExpire',
        'retention',
        'retentionRuns',
        'logRetention',
        'auditRetention',
        'slipKey',
      ],
      sendsTraces: true,
      async start({ settings, bus, log, meter, tracer, untilDone }) {
        const partitions = settings.partitions ?? PARTITIONS;
        const [store] = await Promise.all([
          untilDone('opening the store', () => openStore(settings.storeUrl, [...runCollections, ...auditCollections])),
          warmParseThread(),
        ]);
        await untilDone('setting the streams up', () =>
          ensureStreams(bus, { partitions, replicas: settings.natsReplicas, logsAgeMsMax: settings.logRetention }),
        );
        const scheduler = await untilDone('joining', () =>
          startScheduler({
            bus,
            log,
            meter,
            tracer,
            partitions,
            ledger: new RunsRepository(store, { log }),
            runnerLeaseMs: settings.runnerLeaseSecs * 1000,
            queueTimeoutMs: settings.queueTimeout,
            logBytesMax: settings.logBytesMax,
            artifactExpireMs: settings.artifactExpire,
            retention: {
              ledger: new StoredRetention(store),
              runMs: settings.retention,
              runs: settings.retentionRuns,
              auditMs: settings.auditRetention,
            },
            keySlots: settings.keySlots,
            slipKey: settings.slipKey,
          }),
        );
        return {
          ready: async () => {
            if (scheduler.trouble !== undefined) throw new Error(`it cannot commit: ${scheduler.trouble}`);
            await allAnswer({ 'the store': () => store.ping() });
          },
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

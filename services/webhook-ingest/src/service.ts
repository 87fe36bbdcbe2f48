/** `penstock service webhook-ingest`: the push webhook in a process of its own; any number of them, behind an ingress. */
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ConfigurationError, loadTiers, serverMode } from '@penstock/config';
import { openMirrors } from '@penstock/git';
import { buildServer, closeWithin } from '@penstock/http';
import { countPeers, retryUntilDone, runService } from '@penstock/service';
import { openStore, runCollections } from '@penstock/store';
import { ingestCollections } from './collections.ts';
import { WEBHOOK_KEYS, webhookSettings } from './settings.ts';
import { startWebhookIngest } from './webhook-ingest.ts';

const PARTITIONS = 16;
const CONNECTIONS_MAX = 20_000;
/** Between the first `/ready` that says no and the closed port: whoever spreads the load has to notice. */
const LEAVING_MS = 1_500;
const CLOSE_MS_MAX = 12_000;

export function runWebhookIngestService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService({
    name: 'webhook-ingest',
    keys: [
      ...WEBHOOK_KEYS, 'listen', 'mode', 'dataDir', 'corsOrigins', 'jwtSecret', 'baseUrl', 'storeUrl', 'partitions', 'tiersFile',
      'gitCredentialsFile', 'gitCacheBytesMax', 'trustProxy', 'rateLimitRead', 'rateLimitApi', 'rateLimitWebhook',
    ],
    check(settings) {
      if (settings.jwtSecret === undefined) throw new ConfigurationError(['JWT_SECRET is missing; an ingest that runs apart needs the one that the other services have']);
      webhookSettings(settings, serverMode(settings) ?? 'production');
    },
    async start({ settings, bus, log, stopping }) {
      const mode = serverMode(settings) ?? 'production';
      const { settings: webhooks, warnings } = webhookSettings(settings, mode);
      for (const warning of warnings) log.warn({}, warning);
      const store = await retryUntilDone('opening the store', log, stopping, () => openStore(settings.storeUrl, [...runCollections, ...ingestCollections]));
      const mirrors = openMirrors({
        folder: join(resolve(settings.dataDir), 'ingest-mirrors'), bytesMax: settings.gitCacheBytesMax, partial: true, log,
        policy: { mode, allowedHosts: settings.gitAllowedHosts },
        credentialsFile: settings.gitCredentialsFile,
      });
      const peers = countPeers(bus, 'webhook-ingest');
      const app = buildServer({
        corsOrigins: settings.corsOrigins, connectionsMax: CONNECTIONS_MAX, log, trustProxy: settings.trustProxy,
        rateLimits: { read: settings.rateLimitRead, api: settings.rateLimitApi, webhook: settings.rateLimitWebhook, shares: () => peers.count() },
      });
      let listening = '';
      // The scheduler sets the streams up.
      const ingest = await retryUntilDone('taking deliveries', log, stopping, () => startWebhookIngest({
        ...webhooks, bus, store, log, mirrors,
        partitions: settings.partitions ?? PARTITIONS,
        jwtSecret: settings.jwtSecret ?? '',
        baseUrl: () => settings.baseUrl ?? listening,
        tiers: loadTiers(settings.tiersFile),
      }));
      await ingest.addRoutes(app);
      listening = await app.listen({ ...settings.listen, backlog: 1_024 });
      log.info({ url: listening }, 'listens');
      return {
        ready: () => store.ping(),
        async drain() {
          await pause(LEAVING_MS);
          peers.stop();
          await closeWithin(app, CLOSE_MS_MAX);
          await ingest.close();
          await mirrors.close();
          await store.close();
        },
      };
    },
  }, env);
}

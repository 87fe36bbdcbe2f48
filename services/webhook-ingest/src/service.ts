/** `penstock service webhook-ingest`: the push webhook in a process of its own; any number of them, behind an ingress. */
import { warmParseThread } from '@penstock/parse-pool';
import { join, resolve } from 'node:path';
import { ConfigurationError, defaultDataFolder, loadTiers, serverMode } from '@penstock/config';
import { CommittingSchedulers } from '@penstock/run-client';
import { allAnswer, HTTP_KEYS, runService } from '@penstock/service';
import { publicServer } from '@penstock/service/public-server';
import { openStore, runCollections } from '@penstock/store';
import { ingestCollections } from './model/collections.ts';
import { WEBHOOK_KEYS, webhookSettings } from './settings.ts';
import { startWebhookIngest } from './start.ts';

const PARTITIONS = 16;
const CONNECTIONS_MAX = 20_000;

export function runWebhookIngestService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'webhook-ingest',
      isBehindIngress: true,
      keys: [
        ...WEBHOOK_KEYS,
        ...HTTP_KEYS,
        'dataDir',
        'jwtSecret',
        'baseUrl',
        'storeUrl',
        'partitions',
        'tiersFile',
        'gitCredentialsFile',
        'gitCacheBytesMax',
      ],
      check(settings) {
        if (settings.jwtSecret === undefined)
          throw new ConfigurationError([
            'JWT_SECRET is missing; an ingest that runs apart needs the one that the other services have',
          ]);
        webhookSettings(settings, serverMode(settings) ?? 'production');
      },
      async start({ settings, bus, log, meter, untilDone }) {
        const mode = serverMode(settings) ?? 'production';
        const { settings: webhooks, warnings } = webhookSettings(settings, mode);
        for (const warning of warnings) log.warn({}, warning);
        // `serve` loads this file in a thread that runs no program itself.
        const [store, { openMirrors }] = await Promise.all([
          untilDone('opening the store', () => openStore(settings.storeUrl, [...runCollections, ...ingestCollections])),
          import('@penstock/git/mirrors'),
          warmParseThread(),
        ]);
        const mirrors = openMirrors({
          folder: join(resolve(settings.dataDir ?? defaultDataFolder(env)), 'ingest-mirrors'),
          bytesMax: settings.gitCacheBytesMax,
          partial: true,
          log,
          policy: { mode, allowedHosts: settings.gitAllowedHosts },
          credentialsFile: settings.gitCredentialsFile,
        });
        const server = publicServer({
          name: 'webhook-ingest',
          settings,
          bus,
          log,
          meter,
          connectionsMax: CONNECTIONS_MAX,
        });
        // The scheduler sets the streams up.
        const ingest = await untilDone('taking deliveries', () =>
          startWebhookIngest({
            ...webhooks,
            bus,
            store,
            log,
            meter,
            mirrors,
            partitions: settings.partitions ?? PARTITIONS,
            jwtSecret: settings.jwtSecret ?? '',
            baseUrl: () => settings.baseUrl ?? server.url,
            tiers: loadTiers(settings.tiersFile),
          }),
        );
        const committing = new CommittingSchedulers(bus);
        await ingest.addRoutes(server.app);
        await server.listen();
        return {
          ready: () => allAnswer({ 'the store': () => store.ping(), 'a scheduler': () => committing.check() }),
          drain: [
            ...server.drain,
            ['ingest', () => ingest.close()],
            ['mirrors', () => mirrors.close()],
            ['store', () => store.close()],
          ],
        };
      },
    },
    env,
  );
}

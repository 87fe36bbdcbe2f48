/** `penstock service registry`: extensions in a process of its own; any number of them, behind an ingress. */
import { ConfigurationError, loadTiers } from '@penstock/config';
import { openIdentity } from '@penstock/identity';
import { openObjectStore } from '@penstock/object-store';
import { warmParseThread } from '@penstock/parse-pool';
import { allAnswer, HTTP_KEYS, runService } from '@penstock/service';
import { publicServer } from '@penstock/service/public-server';
import { auditCollections, AuditRepository, openStore, runCollections } from '@penstock/store';
import { builtInExtensions } from './built-in-extensions.ts';
import { registryCollections } from './catalogue/collections.ts';
import { startRegistry } from './start.ts';

/** The JetStream bucket of packages, where they are kept there. */
export const PACKAGES_BUCKET = 'packages';
const CONNECTIONS_MAX = 10_000;
/** As gateways and schedulers have it. */
const PARTITIONS = 16;

export function runRegistryService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'registry',
      isBehindIngress: true,
      keys: [
        ...HTTP_KEYS,
        'apiKey',
        'jwtSecret',
        'storeUrl',
        'objectsUrl',
        'contentsListen',
        'tiersFile',
        'extensionPolicy',
        'logRetention',
        'partitions',
      ],
      check(settings) {
        const missing = [
          ...(settings.apiKey === undefined ? ['SERVICE_API_KEY'] : []),
          ...(settings.jwtSecret === undefined ? ['JWT_SECRET'] : []),
        ];
        if (missing.length > 0)
          throw new ConfigurationError(
            missing.map((name) => `${name} is missing; it is the one that the gateways have`),
          );
        loadTiers(settings.tiersFile);
      },
      async start({ settings, bus, log, meter, untilDone }) {
        const { apiKey, jwtSecret = '' } = settings;
        const store = await untilDone('opening the store', () =>
          openStore(settings.storeUrl, [...registryCollections, ...runCollections, ...auditCollections]),
        );
        const objects = await untilDone('opening the storage of packages', () =>
          openObjectStore(settings.objectsUrl ?? 'nats', { bus, bucket: PACKAGES_BUCKET }),
        );
        const registry = await untilDone('reading the extensions', () =>
          startRegistry({
            bus,
            store,
            objects,
            log,
            meter,
            tiers: loadTiers(settings.tiersFile),
            policy: settings.extensionPolicy,
            contentsListen: settings.contentsListen,
            logRetentionMs: settings.logRetention,
            partitions: settings.partitions ?? PARTITIONS,
          }),
        );
        await untilDone('publishing the extensions that come along', async () =>
          registry.publishBuiltIns(await builtInExtensions()),
        );
        await warmParseThread();
        const identity = openIdentity({ bus, apiKey, jwtSecret, publicRead: false });
        const server = publicServer({ name: 'registry', settings, bus, log, meter, connectionsMax: CONNECTIONS_MAX });
        const audit = new AuditRepository(store, { log });
        registry.addRoutes(server.app, { callers: identity.callers, audit });
        await server.listen();
        return {
          ready: () => allAnswer({ 'the store': () => store.ping(), 'the object storage': () => objects.ping() }),
          drain: [
            ...server.drain,
            ['registry', () => registry.close()],
            ['identity', () => identity.close()],
            ['audit log', () => audit.close()],
            ['store', () => store.close()],
          ],
        };
      },
    },
    env,
  );
}

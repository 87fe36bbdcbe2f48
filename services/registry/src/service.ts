/** `penstock service registry`: extensions in a process of its own; any number of them, behind an ingress. */
import { ConfigurationError, loadTiers } from '@penstock/config';
import { buildServer, closeWithin } from '@penstock/http';
import { openIdentity } from '@penstock/identity';
import { openObjectStore } from '@penstock/object-store';
import { countPeers, HTTP_KEYS, httpSettings, retryUntilDone, runService } from '@penstock/service';
import { openStore } from '@penstock/store';
import { registryCollections } from './collections.ts';
import { startRegistry } from './start-registry.ts';

/** The JetStream bucket of packages, where they are kept there. */
export const PACKAGES_BUCKET = 'packages';
const CONNECTIONS_MAX = 10_000;
const CLOSE_MS_MAX = 12_000;

export function runRegistryService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'registry',
      isBehindIngress: true,
      keys: [...HTTP_KEYS, 'apiKey', 'jwtSecret', 'storeUrl', 'objectsUrl', 'tiersFile', 'extensionPolicy'],
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
      async start({ settings, bus, log, stopping }) {
        const { apiKey, jwtSecret = '' } = settings;
        const store = await retryUntilDone('opening the store', log, stopping, () =>
          openStore(settings.storeUrl, registryCollections),
        );
        const objects = await retryUntilDone('opening the storage of packages', log, stopping, () =>
          openObjectStore(settings.objectsUrl ?? 'nats', { bus, bucket: PACKAGES_BUCKET }),
        );
        const registry = await retryUntilDone('reading the extensions', log, stopping, () =>
          startRegistry({
            bus,
            store,
            objects,
            log,
            tiers: loadTiers(settings.tiersFile),
            policy: settings.extensionPolicy,
          }),
        );
        const peers = countPeers(bus, 'registry');
        const identity = openIdentity({ bus, apiKey, jwtSecret, publicRead: false });
        const app = buildServer({
          ...httpSettings(settings, () => peers.count()),
          connectionsMax: CONNECTIONS_MAX,
          log,
        });
        registry.addRoutes(app, { callers: identity.callers });
        const url = await app.listen({ host: settings.listen.host, port: settings.listen.port });
        log.info({ url }, 'listens');
        return {
          async ready() {
            await Promise.all([store.ping(), objects.ping()]);
          },
          async drain() {
            peers.stop();
            await closeWithin(app, CLOSE_MS_MAX);
            await registry.close();
            await identity.close();
            await store.close();
          },
        };
      },
    },
    env,
  );
}

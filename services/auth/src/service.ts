/** `penstock service auth`: logins and tokens in a process of its own; any number of them, behind an ingress. */
import { ConfigurationError, isShortSecret, serverMode } from '@penstock/config';
import { buildServer, closeWithin } from '@penstock/http';
import { countPeers, HTTP_KEYS, httpSettings, retryUntilDone, runService } from '@penstock/service';
import { auditCollections, AuditRepository, openStore } from '@penstock/store';
import { startAuth } from './auth.ts';
import { authCollections } from './collections.ts';
import { chosenProvider } from './providers/choice.ts';
import { providerSettings } from './providers/settings.ts';

const CLOSE_MS_MAX = 12_000;
const CONNECTIONS_MAX = 20_000;

const KEYS = [
  ...HTTP_KEYS,
  'storeUrl',
  'jwtSecret',
  'baseUrl',
  'dashboardUrl',
  'gitHostProvider',
  'gitHostBaseUrl',
  'gitHostApiUrl',
  'gitHostIssuer',
  'gitHostClientId',
  'gitHostClientSecret',
  'admins',
  'defaultTier',
] as const;

export function runAuthService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'auth',
      isBehindIngress: true,
      keys: KEYS,
      check(settings) {
        if (settings.jwtSecret === undefined)
          throw new ConfigurationError([
            'JWT_SECRET is missing; services that run apart share one: openssl rand -hex 32',
          ]);
        try {
          chosenProvider({
            settings: providerSettings(settings),
            mode: serverMode(settings) ?? 'production',
            baseUrl: () => '',
          });
        } catch (error) {
          throw error instanceof RangeError ? new ConfigurationError([error.message]) : error;
        }
      },
      async start({ settings, bus, log, stopping }) {
        const { listen, jwtSecret = '' } = settings;
        if (isShortSecret(jwtSecret)) log.warn({}, 'JWT_SECRET is shorter than 32 bytes');
        const store = await retryUntilDone('opening the store', log, stopping, () =>
          openStore(settings.storeUrl, [...authCollections, ...auditCollections]),
        );
        const audit = new AuditRepository(store, { log });
        const peers = countPeers(bus, 'auth');
        const app = buildServer({
          ...httpSettings(settings, () => peers.count()),
          connectionsMax: CONNECTIONS_MAX,
          log,
        });
        let ownUrl = '';
        const auth = startAuth({
          bus,
          store,
          jwtSecret,
          audit,
          log,
          mode: serverMode(settings) ?? 'production',
          baseUrl: () => settings.baseUrl ?? ownUrl,
          dashboardUrl: settings.dashboardUrl,
          provider: providerSettings(settings),
          admins: settings.admins,
          defaultTier: settings.defaultTier,
        });
        await auth.addRoutes(app);
        ownUrl = await app.listen({ host: listen.host, port: listen.port });
        log.info({ url: ownUrl }, 'listens');
        return {
          ready: () => store.ping(),
          async drain() {
            peers.stop();
            await closeWithin(app, CLOSE_MS_MAX);
            await auth.close();
            await audit.close();
            await store.close();
          },
        };
      },
    },
    env,
  );
}

/** `penstock service auth`: logins and tokens in a process of its own; any number of them, behind an ingress. */
import { ConfigurationError, isShortSecret, serverMode } from '@penstock/config';
import { allAnswer, HTTP_KEYS, runService } from '@penstock/service';
import { publicServer } from '@penstock/service/public-server';
import { auditCollections, AuditRepository, cloneSecretsSpec, openStore } from '@penstock/store';
import { checkAuthSettings } from './check-settings.ts';
import { startAuth } from './start.ts';
import { authCollections } from './model/collections.ts';
import { providerSettings } from './providers/settings.ts';

const CONNECTIONS_MAX = 20_000;

const KEYS = [
  ...HTTP_KEYS,
  'storeUrl',
  'jwtSecret',
  'masterKeys',
  'slipKey',
  'baseUrl',
  'dashboardUrl',
  'gitHostProvider',
  'gitHostBaseUrl',
  'gitHostApiUrl',
  'gitHostIssuer',
  'gitHostClientId',
  'gitHostClientSecret',
  'admins',
  'allowedLogins',
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
        checkAuthSettings(settings);
      },
      async start({ settings, bus, log, meter, untilDone }) {
        const { jwtSecret = '' } = settings;
        if (isShortSecret(jwtSecret)) log.warn({}, 'JWT_SECRET is shorter than 32 bytes');
        const store = await untilDone('opening the store', () =>
          openStore(settings.storeUrl, [...authCollections, ...auditCollections, cloneSecretsSpec]),
        );
        const audit = new AuditRepository(store, { log });
        const server = publicServer({ name: 'auth', settings, bus, log, meter, connectionsMax: CONNECTIONS_MAX });
        const auth = startAuth({
          bus,
          store,
          jwtSecret,
          masterKeys: settings.masterKeys,
          slipKey: settings.slipKey,
          audit,
          log,
          mode: serverMode(settings) ?? 'production',
          baseUrl: () => settings.baseUrl ?? server.url,
          dashboardUrl: settings.dashboardUrl,
          provider: providerSettings(settings),
          admins: settings.admins,
          allowedLogins: settings.allowedLogins,
          defaultTier: settings.defaultTier,
        });
        await auth.addRoutes(server.app);
        await server.listen();
        return {
          ready: () => allAnswer({ 'the store': () => store.ping() }),
          drain: [
            ...server.drain,
            ['auth', () => auth.close()],
            ['audit log', () => audit.close()],
            ['store', () => store.close()],
          ],
        };
      },
    },
    env,
  );
}

/** `penstock service gateway`: the API in a process of its own; any number of them can stand behind an ingress. */
import { sessionsSpec, suspendedUsersSpec } from '@penstock/identity';
import { checkAdminKey, ConfigurationError, loadTiers, serverMode } from '@penstock/config';
import { CommittingSchedulers } from '@penstock/run-client';
import { warmParseThread } from '@penstock/parse-pool';
import { allAnswer, countPeers, HTTP_KEYS, httpSettings, runService } from '@penstock/service';
import {
  auditCollections,
  AuditRepository,
  openStore,
  runCollections,
  KEPT_VIEW_CHARACTERS,
  RunsRepository,
} from '@penstock/store';
import { gatewayCollections } from './collections.ts';
import { storedSessions } from './stored-sessions.ts';
import { startGateway } from './start.ts';

const PARTITIONS = 16;
/**
 * A file is read within 5 s, an owner answers within 10 s of that. If a request were broken off before, nobody would know what
 * became of it.
 */
const CLOSE_MS_MAX = 20_000;

export function runGatewayService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'gateway',
      isBehindIngress: true,
      keys: [
        ...HTTP_KEYS,
        'apiKey',
        'adminKey',
        'publicRead',
        'triggerWaitSecs',
        'storeUrl',
        'partitions',
        'playground',
        'introspection',
        'streamsPerUser',
        'jwtSecret',
        'tiersFile',
        'tenantTier',
      ],
      check(settings) {
        const missing = [
          ...(settings.apiKey === undefined ? ['SERVICE_API_KEY'] : []),
          ...(settings.jwtSecret === undefined ? ['JWT_SECRET'] : []),
        ];
        if (missing.length > 0)
          throw new ConfigurationError(
            missing.map(
              (name) => `${name} is missing; gateways that run apart make none for themselves: openssl rand -hex 32`,
            ),
          );
        checkAdminKey(settings);
        loadTiers(settings.tiersFile);
      },
      async start({ settings, bus, log, meter, untilDone }) {
        const [store] = await Promise.all([
          untilDone('opening the store', () =>
            openStore(settings.storeUrl, [
              ...runCollections,
              ...gatewayCollections,
              ...auditCollections,
              sessionsSpec,
              suspendedUsersSpec,
            ]),
          ),
          warmParseThread(),
        ]);
        const audit = new AuditRepository(store, { log });
        const peers = countPeers(bus, 'gateway');
        const mode = serverMode(settings) ?? 'production';
        const publicRead = settings.publicRead ?? mode === 'development';
        const gateway = await startGateway({
          listen: settings.listen,
          bus,
          store,
          log,
          meter,
          runs: new RunsRepository(store, { viewCharactersMax: KEPT_VIEW_CHARACTERS, log }),
          partitions: settings.partitions ?? PARTITIONS,
          apiKey: settings.apiKey,
          adminKey: settings.adminKey,
          jwtSecret: settings.jwtSecret,
          isSessionActive: storedSessions(store),
          tiers: loadTiers(settings.tiersFile),
          tenantTier: settings.tenantTier,
          audit,
          mode,
          logLevel: settings.logLevel,
          publicRead,
          ...httpSettings(settings, () => peers.count()),
          triggerWaitSecs: settings.triggerWaitSecs,
          playground: settings.playground,
          introspection: settings.introspection,
          streamsPerUser: settings.streamsPerUser,
        });
        const committing = new CommittingSchedulers(bus);
        log.info({ url: gateway.url, mode, publicRead }, 'listens');
        return {
          ready: () => allAnswer({ 'the store': () => store.ping(), 'a scheduler': () => committing.check() }),
          drain: [
            ['peers', () => peers.stop()],
            ['gateway', () => gateway.close(CLOSE_MS_MAX)],
            ['audit log', () => audit.close()],
            ['store', () => store.close()],
          ],
        };
      },
    },
    env,
  );
}

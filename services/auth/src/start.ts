/**
 * Auth, put together: users, sessions, tokens and the flows that lead to them, on the store's collections that it alone
 * writes. Clients reach it by its routes under `/auth`, other services over the bus.
 */
import { bootMs } from '@penstock/async';
import type { Bus } from '@penstock/bus';
import { userOfTenant } from '@penstock/identity';
import type { AuditLog, DocumentStore } from '@penstock/store';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { AccessGrants } from './model/access-grants.ts';
import { answerAuthCalls } from './routes/calls.ts';
import type { UserRow } from './model/collections.ts';
import { DeviceFlow } from './flows/device-flow.ts';
import { Fleet, type FleetDoor } from './flows/fleet.ts';
import { AuthRefusal } from './model/errors.ts';
import { OneTimeClaims } from './model/one-time-claims.ts';
import { MasterKeys } from './model/master-keys.ts';
import { namedAccounts, type Named } from './model/named-accounts.ts';
import { PAGE_HEADERS, messagePage } from './routes/pages.ts';
import { PersonalTokens } from './model/personal-tokens.ts';
import { chosenProvider } from './flows/provider-choice.ts';
import type { Profile } from './model/profile.ts';
import { withoutSlash, type ProviderSettings } from './providers/settings.ts';
import { KeyHolders } from './model/key-holders.ts';
import { startResealing } from './model/resealing.ts';
import { Revocations } from './model/revocations.ts';
import { RunnerTokens } from './model/runner-tokens.ts';
import { addDiscoveryRoutes } from './routes/discovery-routes.ts';
import { addDevicePages, consentCookie, DEVICE_CONSENT } from './routes/device-pages.ts';
import { addDeviceRoutes } from './routes/device-routes.ts';
import { addEmbeddedRoutes } from './routes/embedded-routes.ts';
import { addFleetRoutes } from './routes/fleet-routes.ts';
import { acceptForms } from './routes/forms.ts';
import { answerRefusal } from './routes/refusals.ts';
import { answerCloneRequests } from './routes/clone-answers.ts';
import { answerSlips } from './routes/slips.ts';
import { addSessionRoutes } from './routes/session-routes.ts';
import { takeAllAsJson } from './routes/bodies.ts';
import { requestAudit } from './routes/request-audit.ts';
import { addWebRoutes } from './routes/web-routes.ts';
import { Secrets } from './model/secrets.ts';
import { Sessions } from './model/sessions.ts';
import { SigningKeys } from './model/signing-keys.ts';
import { CloneSecrets } from './model/clone-secrets.ts';
import { StageSecrets } from './model/stage-secrets.ts';
import { startSweeper } from './model/sweeper.ts';
import { Tries } from './routes/tries.ts';
import { Suspensions } from './model/suspensions.ts';
import { Users } from './model/users.ts';
import { WebLogin } from './flows/web-login.ts';
import type { Log } from '@penstock/telemetry/log';

export interface AuthOptions {
  readonly bus: Bus;
  /** Opened with `authCollections` and `cloneSecretsSpec` among its collections. */
  readonly store: DocumentStore;
  readonly jwtSecret: string;
  readonly mode: 'development' | 'production';
  /** Under which clients reach the server: `SERVICE_BASE_URL`, else its own address. Asked for at a request, not before: a free port is known late. */
  readonly baseUrl: () => string;
  /** `SERVICE_DASHBOARD_URL`; default the base address. */
  readonly dashboardUrl?: string | undefined;
  readonly provider: ProviderSettings;
  /** `SERVICE_ADMINS` */
  readonly admins: readonly string[];
  /** `SERVICE_ALLOWED_LOGINS`; default everybody. */
  readonly allowedLogins?: readonly string[] | undefined;
  readonly defaultTier: string;
  /** `SERVICE_MASTER_KEY`; without one no secret is taken. */
  readonly masterKeys?: readonly string[] | undefined;
  /** `SERVICE_SLIP_KEY`; without it no stage gets a secret. */
  readonly slipKey?: string | undefined;
  /** Who lets runners in by their tokens; absent: the broker is not this server's own. */
  readonly fleetDoor?: FleetDoor | undefined;
  readonly audit: AuditLog;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
  /** What nobody sets; default the boot clock. */
  readonly bootNow?: (() => number) | undefined;
}

export interface RunningAuth {
  /** On a server from `buildServer`. */
  addRoutes(app: FastifyInstance): Promise<void>;
  /** Answers no more calls. Routes go with their server. */
  close(): Promise<void>;
}

/** Unknown device codes from one address a minute that the audit log tells of. */
const DEVICE_TRIES_MAX = 10;
/** Wrong user codes from one address a minute; they are short, and RFC 8628 (5.1) reckons with five. */
const USER_CODE_TRIES_MAX = 5;

/** Wrong runner tokens from one address a minute. They cannot be guessed: this keeps revoked machines from asking without end. */
const RUNNER_TRIES_MAX = 30;

/** Throws a RangeError that names a setting of the provider which is missing. */
export function startAuth(options: AuthOptions): RunningAuth {
  const { bus, store, jwtSecret, mode, provider: settings, audit, log } = options;
  const now = options.now ?? Date.now;
  const bootNow = options.bootNow ?? bootMs;
  const baseUrl = (): string => withoutSlash(options.baseUrl());
  const dashboardUrl = (): string =>
    options.dashboardUrl === undefined ? baseUrl() : withoutSlash(options.dashboardUrl);
  const secure = (): boolean => baseUrl().startsWith('https:');
  const named = namedAccounts(options);
  const chosen = chosenProvider({ settings, mode, baseUrl, organizations: named.allowed?.organizations });
  if (chosen.isConfigured) warnOfNames(named, options);
  const provider = chosen.get;

  const secrets = new Secrets(jwtSecret);
  const claims = new OneTimeClaims(store);
  const revocations = new Revocations(bus);
  const loginsAreNames = chosen.embedded !== null;
  const users = new Users(store, { ...named, defaultTier: options.defaultTier, loginsAreNames, now });
  const onReuse = ({ id, userId }: { readonly id: string; readonly userId: string }): void =>
    audit.record({
      at: now(),
      actor: `user/${userId}`,
      action: 'refresh.reuse',
      target: `session/${id}`,
      outcome: 'unauthenticated',
    });
  const sessions = new Sessions(store, { users, claims, revocations, jwtSecret, now, onReuse });
  const tokens = new PersonalTokens(store, revocations, now);
  const access = new AccessGrants(store, { users, revocations, now });
  const suspensions = new Suspensions(store, { users, revocations, now });
  const signedIn = async (profile: Profile): Promise<UserRow> => {
    const user = await users.signedIn(await provider(), profile);
    await access.bind(user);
    return user;
  };
  const devices = new DeviceFlow(store, {
    claims,
    secrets,
    provider,
    baseUrl,
    signedIn,
    userOf: async (id) => {
      const user = await users.get(id);
      return user !== null && (await users.isAdmitted(user)) ? user : null;
    },
    now,
  });
  const webLogin = new WebLogin({ provider, claims, secrets, baseUrl, now });
  const requests = requestAudit(audit, now);
  const masterKeys = new MasterKeys(options.masterKeys ?? []);
  const stageSecrets = new StageSecrets(store, masterKeys, now);
  const resealing = startResealing({ store, keys: masterKeys, log });
  const keyHolders = new KeyHolders({ store, keys: masterKeys, now, log });
  const signingKeys = new SigningKeys(store, masterKeys, now);
  const idTokens = { keys: signingKeys, issuer: baseUrl, now };
  const runnerTokens = new RunnerTokens(store, now);
  const isShut = async (tenant: string): Promise<boolean> => {
    const userId = userOfTenant(tenant);
    return userId !== undefined && (await users.isSuspended(userId));
  };
  const fleet = new Fleet({ bus, tokens: runnerTokens, isShut, door: options.fleetDoor, jwtSecret, log, now });
  const clones = new CloneSecrets(store, stageSecrets);
  const slips = answerSlips({
    ...{ bus, secrets: stageSecrets, clones, idTokens, log, now },
    grantOf: (runner) => fleet.grantOf(runner),
    slipKey: options.slipKey,
    needsProofs: mode === 'production',
  });
  const cloneAnswers = answerCloneRequests({ bus, clones, log });
  const calls = answerAuthCalls({
    bus,
    users,
    sessions,
    tokens,
    stageSecrets,
    fleet,
    runnerTokens,
    access,
    suspensions,
    rotation: { store, keys: masterKeys, holders: keyHolders, resealing },
    audit,
    now,
  });
  const sweeper = startSweeper({ store, now, log });

  const continueDevice = async (
    userCode: string,
    user: UserRow | 'declined' | 'not_allowed',
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    if (typeof user !== 'string') {
      const cookies = [reply.getHeader('Set-Cookie'), consentCookie(user, userCode, { secrets, now, secure })]
        .flat()
        .map(String);
      reply.removeHeader('Set-Cookie');
      return reply.header('Set-Cookie', cookies).redirect(DEVICE_CONSENT, 303);
    }
    await devices.decide(userCode, 'denied', '');
    return reply.headers(PAGE_HEADERS).send(messagePage('Refused', REFUSED_LOGINS[user]));
  };

  return {
    async addRoutes(app) {
      addDiscoveryRoutes(app, { keys: signingKeys, issuer: baseUrl });
      await app.register(async (scope) => {
        scope.setErrorHandler((error, _request, reply) => answerRefusal(error, reply));
        addFleetRoutes(scope, { fleet, tries: new Tries(RUNNER_TRIES_MAX, bootNow), audit: requests });
      });
      await app.register(async (scope) => {
        scope.addHook('onRequest', async (_request, reply) => {
          // Tokens, codes and whose they are stand in these answers.
          reply.header('Cache-Control', 'no-store');
          if (!chosen.isConfigured)
            throw new AuthRefusal(
              503,
              'auth_not_configured',
              'Logins are not configured on this server: it lacks GIT_HOST_CLIENT_ID.',
            );
        });
        scope.setErrorHandler((error, _request, reply) => answerRefusal(error, reply));
        await scope.register(async (api) => {
          takeAllAsJson(api);
          addDeviceRoutes(api, {
            devices,
            sessions,
            users,
            tries: new Tries(DEVICE_TRIES_MAX, bootNow),
            audit: requests,
          });
          addSessionRoutes(api, { sessions, users, jwtSecret, audit: requests, now });
        });
        addWebRoutes(scope, {
          webLogin,
          sessions,
          signedIn,
          baseUrl,
          dashboardUrl,
          mode,
          secure,
          audit: requests,
          continueDevice,
        });
        await scope.register(async (pages) => {
          acceptForms(pages);
          addDevicePages(pages, {
            devices,
            webLogin,
            users,
            secrets,
            tries: new Tries(USER_CODE_TRIES_MAX, bootNow),
            secure,
            audit: requests,
            now,
          });
        });
        if (chosen.embedded !== null) await addEmbeddedRoutes(scope, chosen.embedded);
      });
    },
    async close() {
      sweeper.close();
      resealing.close();
      fleet.close();
      calls.stop();
      slips.stop();
      cloneAnswers.stop();
      await keyHolders.close();
    },
  };
}

const REFUSED_LOGINS = {
  declined: 'The login was declined, and the device was not logged in.',
  not_allowed:
    'This account may not log in here: the operator of this server names who may. The device was not logged in.',
} as const;

function warnOfNames({ admins, allowed }: Named, { mode, provider, log }: AuthOptions): void {
  const kind = provider.clientId === undefined ? 'oidc' : (provider.provider ?? 'github');
  const remedy =
    kind === 'oidc' ? 'name sub:<subject> or a verified email' : 'name a login or a verified email of that host';
  for (const [variable, names] of [
    ['SERVICE_ADMINS', admins],
    ['SERVICE_ALLOWED_LOGINS', allowed],
  ] as const) {
    for (const entry of names?.uselessAt(kind) ?? [])
      log.warn({ variable, entry }, `an entry names nobody at the identity provider that is configured; ${remedy}`);
  }
  if (mode === 'production' && allowed === null)
    log.warn(
      {},
      'everybody with an account at the identity provider may log in; SERVICE_ALLOWED_LOGINS bounds who may',
    );
}

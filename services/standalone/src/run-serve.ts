/** The command `penstock serve`: settings from flags and environment, the lines that a person wants to see, signals. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { checkAuthSettings, providerSettings } from '@penstock/auth/settings';
import { kubernetesSettings, STAGE_KEYS, stageLimitsOf } from '@penstock/runner';
import {
  checkAdminKey,
  ConfigurationError,
  defaultDataFolder,
  isShortSecret,
  loadTiers,
  publicReason,
  readConfiguration,
  serverMode,
  unknownVariables,
} from '@penstock/config';
import { WEBHOOK_KEYS, webhookSettings } from '@penstock/webhook-ingest/settings';
import { endStandardError } from '@penstock/telemetry';
import { tracesProblems } from '@penstock/telemetry/traces';
import { adoptLegacyDataFolder } from './legacy-data-folder.ts';
import { apiKeyFile, jwtSecretFile, keptSecret, masterKeyFile } from './keys.ts';
import { DataFolderInUse } from './data-lock.ts';
import { reachableUrl } from './reachable-url.ts';
import { serve, type RunningStage, type ServeOptions } from './serve.ts';

const KEYS = [
  'listen',
  'mode',
  'dataDir',
  'corsOrigins',
  'playground',
  'apiKey',
  'adminKey',
  'jwtSecret',
  'masterKeys',
  'publicRead',
  'triggerWaitSecs',
  'natsUrl',
  'natsServer',
  'natsSync',
  'natsReplicas',
  'baseUrl',
  'gitHostBaseUrl',
  'gitHostIssuer',
  'gitHostClientId',
  'gitHostClientSecret',
  'admins',
  'allowedLogins',
  'defaultTier',
  'tiersFile',
  'introspection',
  'streamsPerUser',
  'trustProxy',
  'rateLimitRead',
  'rateLimitApi',
  'rateLimitWebhook',
  ...WEBHOOK_KEYS,
  'gitCredentialsFile',
  'gitCacheBytesMax',
  'extensionPolicy',
  'objectsUrl',
  'storeUrl',
  'partitions',
  'runnerLeaseSecs',
  'queueTimeout',
  'slots',
  'runnerLabels',
  'logBytesMax',
  'artifactExpire',
  'retention',
  'retentionRuns',
  'logRetention',
  'auditRetention',
  'keySlots',
  ...STAGE_KEYS,
  'logLevel',
] as const;

/** Weaker than this and a key can be guessed. */
const API_KEY_CHARACTERS = 16;
/** More names than this do not help. */
const WAITED_FOR_SHOWN_MAX = 5;
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

/** Resolves with the exit code, once everything has stopped; a start that is told to stop ends by the signal. A second signal ends the process at once. */
export async function runServe(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  let prepared: ReturnType<typeof prepare>;
  try {
    prepared = prepare(argv, env);
  } catch (error) {
    if (error instanceof DataFolderInUse) {
      say(error.message);
      return EXIT_FAILURE;
    }
    if (!(error instanceof ConfigurationError) && !(error instanceof TypeError)) throw error;
    say(error.message);
    return EXIT_USAGE;
  }
  const stop = stopSignal();
  try {
    const server = await serve(prepared.options(), stop.signal);
    stop.hasStarted();
    if (!stop.signal.aborted) {
      for (const line of prepared.lines(server.url)) process.stdout.write(`${line}\n`);
      await stop.requested;
    }
    await server.close((stages) => say(waitingLine(stages, stop.name())));
    return 0;
  } catch (error) {
    if (error === stop.signal.reason) dieOf(stop.name());
    say(error instanceof Error ? error.message : String(error));
    if (env['PENSTOCK_DEBUG'] !== undefined && error instanceof Error) say(error.stack ?? '');
    return EXIT_FAILURE;
  }
}

function prepare(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): { options(): ServeOptions; lines(url: string): string[] } {
  const { values: flags } = parseArgs({
    args: [...argv],
    options: {
      listen: { type: 'string' },
      'data-dir': { type: 'string' },
      playground: { type: 'boolean' },
      'cors-origins': { type: 'string' },
    },
  });
  const given = (name: string, value: string | undefined): { name: string; value: string } | undefined =>
    value === undefined ? undefined : { name, value };
  const settings = readConfiguration(KEYS, {
    env,
    flags: {
      listen: given('--listen', flags.listen),
      dataDir: given('--data-dir', flags['data-dir']),
      corsOrigins: given('--cors-origins', flags['cors-origins']),
      playground: given('--playground', flags.playground === true ? 'true' : undefined),
    },
  });
  const problems = tracesProblems(env);
  if (settings.natsUrl === undefined && (settings.natsReplicas ?? 1) > 1)
    problems.push(
      `SERVICE_NATS_REPLICAS is '${settings.natsReplicas}'; the broker that comes along keeps one copy: leave it out, or name a cluster by SERVICE_NATS_URL`,
    );
  if (problems.length > 0) throw new ConfigurationError(problems);
  const mode = serverMode(settings) ?? 'production';
  const reason = publicReason(settings);
  const { path: dataDir, note } =
    settings.dataDir === undefined
      ? adoptLegacyDataFolder(process.cwd(), defaultDataFolder(env))
      : { path: resolve(settings.dataDir), note: null };
  const publicRead = settings.publicRead ?? mode === 'development';
  // Read again where it is used; what is wrong with it is told here.
  loadTiers(settings.tiersFile);
  const webhooks = webhookSettings(settings, mode);
  checkAdminKey(settings);
  checkAuthSettings(settings);
  const options = (): ServeOptions => ({
    listen: settings.listen,
    dataDir,
    mode,
    jwtSecret: settings.jwtSecret ?? keptSecret(jwtSecretFile(dataDir)),
    masterKeys: settings.masterKeys ?? (mode === 'development' ? [keptSecret(masterKeyFile(dataDir))] : undefined),
    baseUrl: settings.baseUrl,
    dashboardUrl: settings.dashboardUrl,
    provider: providerSettings(settings),
    admins: settings.admins,
    allowedLogins: settings.allowedLogins,
    defaultTier: settings.defaultTier,
    tiersFile: settings.tiersFile,
    tenantTier: settings.tenantTier,
    rateLimits: { read: settings.rateLimitRead, api: settings.rateLimitApi, webhook: settings.rateLimitWebhook },
    trustProxy: settings.trustProxy,
    playground: settings.playground,
    introspection: settings.introspection,
    streamsPerUser: settings.streamsPerUser,
    webhooks: webhooks.settings,
    gitCredentialsFile: settings.gitCredentialsFile,
    gitCacheBytesMax: settings.gitCacheBytesMax,
    extensionPolicy: settings.extensionPolicy,
    objectsUrl: settings.objectsUrl,
    // In production mode its absence has been refused above.
    apiKey: settings.apiKey ?? keptSecret(apiKeyFile(dataDir)),
    adminKey: settings.adminKey,
    publicRead,
    corsOrigins: settings.corsOrigins,
    partitions: settings.partitions ?? 1,
    slots: settings.slots,
    labels: settings.runnerLabels,
    runnerLeaseMs: settings.runnerLeaseSecs * 1000,
    queueTimeoutMs: settings.queueTimeout,
    logBytesMax: settings.logBytesMax,
    artifactExpireMs: settings.artifactExpire,
    retention: {
      runMs: settings.retention,
      runs: settings.retentionRuns,
      logMs: settings.logRetention,
      auditMs: settings.auditRetention,
    },
    keySlots: settings.keySlots,
    drainMs: settings.drain,
    stageUids: settings.stageUids ?? undefined,
    stageDeny: settings.stageDeny,
    stagePaths: settings.stagePaths,
    stageEnv: settings.stageEnv,
    stageLimits: stageLimitsOf(settings),
    executors: settings.executors,
    untrustedIsolation: settings.untrustedIsolation,
    kubernetes: kubernetesSettings(settings),
    isolationRequired: mode === 'production' && !settings.allowUnisolated,
    triggerWaitSecs: settings.triggerWaitSecs,
    logLevel: settings.logLevel,
    natsUrl: settings.natsUrl?.join(','),
    natsBinary: settings.natsServer,
    natsSync: settings.natsSync,
    natsReplicas: settings.natsReplicas,
    store: settings.storeUrl ?? { kind: 'sqlite', path: join(dataDir, 'store.sqlite') },
  });
  const lines = (url: string): string[] => [
    `Penstock listens on ${url}`,
    mode === 'development'
      ? '  mode         development (only this machine reaches it; SERVICE_MODE=production changes it)'
      : `  mode         production (${reason === null ? 'SERVICE_MODE asks for it' : `because ${reason}`})`,
    `  data folder  ${dataDir}`,
    ...(note === null ? [] : [`  note         ${note}`]),
    settings.apiKey === undefined
      ? `  API key      ${keptSecret(apiKeyFile(dataDir))} (kept in ${apiKeyFile(dataDir)})`
      : '  API key      as given by SERVICE_API_KEY',
    `  stages       ${stagesLine(settings.stageUids)}`,
    `  reading      ${publicRead ? 'public: everybody who reaches this address may read runs' : 'with a token only'}`,
    ...(settings.apiKey !== undefined && settings.apiKey.length < API_KEY_CHARACTERS
      ? [
          `  warning      SERVICE_API_KEY is shorter than ${API_KEY_CHARACTERS} characters; make one with: openssl rand -hex 32`,
        ]
      : []),
    `  dashboard    ${settings.baseUrl ?? reachableUrl(url)}/dashboard/`,
    ...(settings.playground ? [`  playground   ${url}/graphql/playground`] : []),
    ...(settings.baseUrl === undefined && reachableUrl(url) !== url
      ? [
          `  warning      SERVICE_BASE_URL is not set: logins and links lead to ${reachableUrl(url)}, which only this machine reaches`,
        ]
      : []),
    ...webhooks.warnings.map((warning) => `  warning      ${warning}`),
    ...(isShortSecret(settings.jwtSecret)
      ? ['  warning      JWT_SECRET is shorter than 32 bytes; make one with: openssl rand -hex 32']
      : []),
    ...unknownVariables(env).map(
      ({ name, suggestion }) =>
        `  warning      ${name} is not a variable of this server${suggestion === null ? '' : `; did you mean ${suggestion}?`}`,
    ),
  ];
  return { options, lines };
}

/** `process.exit` would wait for a thread whose store builds an index. */
function dieOf(signal: NodeJS.Signals): void {
  endStandardError();
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

function say(message: string): void {
  process.stderr.write(`penstock: ${message}\n`);
}

/** Whom the stages run as. What this machine lacks for more is logged by the runner. */
function stagesLine(uids: { readonly first: number; readonly last: number } | null): string {
  if (process.getuid?.() !== 0)
    return 'run as the user of this server; start as root to give each key a user of its own';
  if (uids === null) return 'run as root, with everything that root may do (SERVICE_STAGE_UIDS is off)';
  return `run as users of their own, one for each key (${uids.first} to ${uids.last})`;
}

/** What is read by who has pressed ^C, or sent a signal, while stages are running. */
function waitingLine(stages: readonly RunningStage[], signal: NodeJS.Signals): string {
  const shown = stages.slice(0, WAITED_FOR_SHOWN_MAX).map(({ stage, pipelineName }) => `${stage} of ${pipelineName}`);
  const more = stages.length - shown.length;
  const names = [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  return `waiting for ${stages.length} ${stages.length === 1 ? 'stage' : 'stages'} (${names}); ${signal === 'SIGINT' ? '^C again' : `a second ${signal}`} ends ${stages.length === 1 ? 'it' : 'them'}`;
}

function stopSignal(): {
  readonly signal: AbortSignal;
  readonly requested: Promise<void>;
  /** Of the first one. */
  name(): NodeJS.Signals;
  hasStarted(): void;
} {
  const stopping = new AbortController();
  const { promise: requested, resolve: request } = Promise.withResolvers<void>();
  let first: NodeJS.Signals = 'SIGINT';
  let isStarting = true;
  const handle = (name: NodeJS.Signals): void => {
    if (stopping.signal.aborted) return isStarting ? dieOf(name) : process.exit(EXIT_INTERRUPTED);
    first = name;
    stopping.abort();
    request();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, handle);
  const hasStarted = (): void => {
    isStarting = false;
  };
  return { signal: stopping.signal, requested, name: () => first, hasStarted };
}

/**
 * Every variable that configures a service, declared once: readers, help texts and the table of docs/operating.md are
 * made from it. A flag of `penstock serve`, where there is one, stands above its variable.
 */
import {
  addressRange,
  boolean,
  choice,
  duration,
  integer,
  list,
  lentVariables,
  listenAddress,
  origin,
  powerOfTwo,
  secretKey,
  secretKeys,
  storeUrl,
  text,
  url,
  uidRange,
  type Kind,
} from './kinds.ts';
import { objectsUrl } from './object-address.ts';

type ServiceName = 'serve' | 'gateway' | 'scheduler' | 'runner' | 'auth' | 'registry' | 'webhook-ingest' | 'scaler';

export interface Variable<T, D extends T | undefined = T | undefined> {
  readonly name: string;
  readonly kind: Kind<T>;
  /** Undefined: none; then the reader gives undefined. */
  readonly default: D;
  /** Where the default is not one value: what the table says in its place. */
  readonly defaultText?: string;
  readonly meaning: string;
  readonly services: readonly ServiceName[];
  /** Its value is never shown, in problems neither. */
  readonly secret?: true;
  /** A start in production mode without it is refused; how to get a value. */
  readonly requiredInProduction?: string;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

const ownProcesses: readonly ServiceName[] = ['gateway', 'scheduler', 'runner', 'auth', 'registry', 'webhook-ingest'];
const allServices: readonly ServiceName[] = ['serve', ...ownProcesses];
const withScaler = (services: readonly ServiceName[]): readonly ServiceName[] => [...services, 'scaler'];

/**
 * Each scheduler tells of all runners, so of several the same is counted once; a figure that nobody has is none; and where no scheduler is
 * scraped there is none at all.
 */
export const DEMAND_QUERY =
  '(sum(penstock_queue_demand) or vector(0))' +
  ' + (sum(max by (labels) (penstock_runner_slots{state="busy"})) or vector(0))' +
  ' + 0 * sum(penstock_partitions)';

export const variables = {
  listen: variable({
    name: 'SERVICE_LISTEN',
    kind: listenAddress(),
    default: { host: '127.0.0.1', port: 8080 },
    defaultText: '`127.0.0.1:8080`',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Where the API listens. Any address that is not loopback means production mode.',
  }),
  internalListen: variable({
    name: 'SERVICE_INTERNAL_LISTEN',
    kind: listenAddress(),
    default: { host: '127.0.0.1', port: 9090 },
    defaultText: '`127.0.0.1:9090`',
    services: withScaler(ownProcesses),
    meaning:
      'Where a service process answers `/health` and `/ready`; for probes, not for clients. Port 0 takes a free one.',
  }),
  contentsListen: optional({
    name: 'SERVICE_CONTENTS_LISTEN',
    kind: listenAddress(),
    defaultText: 'none: they go by the broker',
    services: ['registry'],
    meaning:
      'Where runners and gateways of the same network bring and fetch large files, without the broker: TLS by keys that are made for each. Port 0 takes a free one.',
  }),
  runnerId: optional({
    name: 'SERVICE_RUNNER_ID',
    kind: token(),
    defaultText: "the machine's name",
    services: ['runner'],
    meaning:
      'The name of a runner, the same at each start, so that its workspaces are found again. No two runners share one.',
  }),
  mode: optional({
    name: 'SERVICE_MODE',
    kind: choice('development', 'production'),
    defaultText: 'development where only this machine reaches the server, else production',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest', 'runner'],
    meaning:
      'Production mode generates nothing and wants its secrets given. `development` is refused on an address that others can reach.',
  }),
  dataDir: optional({
    name: 'SERVICE_DATA_DIR',
    kind: text('folder'),
    defaultText: '`$XDG_DATA_HOME/penstock`, else `~/.local/share/penstock`',
    services: ['serve', 'runner', 'webhook-ingest'],
    meaning: 'Where everything is kept; the same folder resumes its runs. It must not lie inside a checkout.',
  }),
  corsOrigins: variable({
    name: 'SERVICE_CORS_ORIGINS',
    kind: list(origin()),
    default: [],
    defaultText: 'none',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Origins whose pages may call the API.',
  }),
  playground: variable({
    name: 'SERVICE_PLAYGROUND',
    kind: boolean(),
    default: false,
    services: ['serve', 'gateway'],
    meaning: 'Serves an IDE at `/graphql/playground`.',
  }),
  apiKey: optional({
    name: 'SERVICE_API_KEY',
    kind: apiKey(),
    defaultText: 'made and kept in the data folder in development mode',
    services: ['serve', 'gateway', 'registry'],
    secret: true,
    requiredInProduction: 'make one with: openssl rand -hex 32',
    meaning:
      'The key that programs present as `Authorization: Bearer`; it sees and changes the runs of the tenant `service`.',
  }),
  adminKey: optional({
    name: 'SERVICE_ADMIN_KEY',
    kind: adminKey(),
    defaultText: 'none: admins who are logged in administer, and in development mode the API key',
    services: ['serve', 'gateway'],
    secret: true,
    meaning:
      'The key that `penstock admin` presents where nobody is logged in: it administers, and sees and changes nothing else. Another one than `SERVICE_API_KEY`.',
  }),
  jwtSecret: optional({
    name: 'JWT_SECRET',
    kind: text('text'),
    defaultText: 'made and kept in the data folder in development mode',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    secret: true,
    requiredInProduction: 'make one with: openssl rand -hex 32',
    meaning:
      'Signs access tokens. At least 32 bytes: a shorter one is a warning in development mode and refused in production mode. Several by comma while one takes another’s place: the first signs, all verify ([rotation](authentication.md#another-jwt_secret)).',
  }),
  masterKeys: optional({
    name: 'SERVICE_MASTER_KEY',
    kind: secretKeys(),
    defaultText:
      'made and kept in the data folder in development mode; without it in production mode no secret is taken',
    services: ['serve', 'auth'],
    secret: true,
    meaning:
      'Encrypts the secrets of stages where they are kept. Of several keys the first encrypts and all decrypt: put a new one in front, start, and take the old one away once the log says that nothing is left under it.',
  }),
  slipKey: optional({
    name: 'SERVICE_SLIP_KEY',
    kind: secretKey(),
    defaultText: 'none: stages get no secrets; `serve` makes its own',
    services: ['scheduler', 'auth'],
    secret: true,
    meaning: 'The same for schedulers and auth: by it a scheduler signs which stage a runner may ask secrets for.',
  }),
  baseUrl: optional({
    name: 'SERVICE_BASE_URL',
    kind: url('http:', 'https:'),
    defaultText: 'the address listened on',
    services: ['serve', 'gateway', 'auth', 'webhook-ingest'],
    meaning: 'The address under which clients reach the service.',
  }),
  publicRead: optional({
    name: 'SERVICE_PUBLIC_READ',
    kind: boolean(),
    defaultText: '`true` in development mode, else `false`',
    services: ['serve', 'gateway'],
    meaning: 'Whether everybody may read the runs of the tenant `service`.',
  }),
  triggerWaitSecs: variable({
    name: 'SERVICE_TRIGGER_WAIT_SECS',
    kind: integer({ min: 0, max: 300 }),
    default: 15,
    services: ['serve', 'gateway'],
    meaning: 'How long `triggerPipeline` waits for the end of the run before it answers.',
  }),
  natsUrl: optional({
    name: 'SERVICE_NATS_URL',
    kind: list(url('nats:', 'tls:', 'ws:', 'wss:')),
    defaultText: 'the embedded broker',
    services: allServices,
    secret: true,
    meaning:
      'The addresses of a NATS cluster (2.14 or newer, with JetStream), user and password in them where it wants any.',
  }),
  natsServer: optional({
    name: 'SERVICE_NATS_SERVER',
    kind: text('path'),
    defaultText: 'the one that `npm start` found or brought along',
    services: ['serve'],
    meaning: 'The nats-server binary of the embedded broker.',
  }),
  natsSync: variable({
    name: 'SERVICE_NATS_SYNC',
    kind: choice('default', 'always'),
    default: 'default',
    services: ['serve'],
    meaning:
      '`always`: what is acknowledged survives a power cut, at a lower rate. `default`: it survives any killed process.',
  }),
  natsReplicas: optional({
    name: 'SERVICE_NATS_REPLICAS',
    kind: integer({ min: 1, max: 5 }),
    defaultText: '3 where the broker names a cluster, else 1',
    services: ['serve', 'scheduler'],
    meaning: 'Copies of each stream and bucket.',
  }),
  storeUrl: optional({
    name: 'SERVICE_STORE_URL',
    kind: storeUrl(),
    defaultText: 'a SQLite file in the data folder',
    services: ['serve', 'gateway', 'scheduler', 'auth', 'registry', 'webhook-ingest'],
    secret: true,
    meaning: 'Where run documents are kept.',
  }),
  partitions: optional({
    name: 'SERVICE_PARTITIONS',
    kind: powerOfTwo(256),
    defaultText: '1 for `serve`, else 16',
    services: ['serve', 'gateway', 'scheduler', 'registry', 'webhook-ingest'],
    meaning: 'Into how many logs the runs are divided; fixed at the first start.',
  }),
  runnerLeaseSecs: variable({
    name: 'SERVICE_RUNNER_LEASE_SECS',
    kind: integer({ min: 6, max: 600 }),
    default: 15,
    services: ['serve', 'scheduler', 'runner'],
    meaning:
      'A runner that is not heard of for so long has lost its stages. Higher bridges longer outages of the broker, and notices a loss later.',
  }),
  queueTimeout: variable({
    name: 'SERVICE_QUEUE_TIMEOUT',
    kind: duration({ minMs: SECOND_MS, maxMs: 365 * DAY_MS }),
    default: DAY_MS,
    defaultText: '`24h`',
    services: ['serve', 'scheduler'],
    meaning: 'A stage that no runner takes for so long fails with the reason `no_runner`.',
  }),
  artifactExpire: variable({
    name: 'SERVICE_ARTIFACT_EXPIRE',
    kind: duration({ minMs: 60 * SECOND_MS, maxMs: 3_650 * DAY_MS }),
    default: 30 * DAY_MS,
    defaultText: '`30d`',
    services: ['serve', 'scheduler'],
    meaning: 'How long the files that a stage keeps (`artifacts`) are kept where its `expire` does not say.',
  }),
  retention: variable({
    name: 'SERVICE_RETENTION',
    kind: duration({ minMs: DAY_MS, maxMs: 36_500 * DAY_MS }),
    default: 90 * DAY_MS,
    defaultText: '`90d`',
    services: ['serve', 'scheduler'],
    meaning:
      'A run that has ended is deleted after so long, with its logs and kept files. A tier can say another number of days (`retentionDays`).',
  }),
  retentionRuns: variable({
    name: 'SERVICE_RETENTION_RUNS',
    kind: integer({ min: 1, max: 1_000 }),
    default: 20,
    services: ['serve', 'scheduler'],
    meaning:
      'So many of the newest runs of each pipeline are kept whatever their age. A tier can say another number (`retentionRuns`).',
  }),
  logRetention: variable({
    name: 'SERVICE_LOG_RETENTION',
    kind: duration({ minMs: DAY_MS, maxMs: 36_500 * DAY_MS }),
    default: 90 * DAY_MS,
    defaultText: '`90d`',
    services: ['serve', 'scheduler', 'registry'],
    meaning: 'Lines of logs are kept for so long, also of runs that are kept longer.',
  }),
  auditRetention: variable({
    name: 'SERVICE_AUDIT_RETENTION',
    kind: duration({ minMs: DAY_MS, maxMs: 36_500 * DAY_MS }),
    default: 400 * DAY_MS,
    defaultText: '`400d`',
    services: ['serve', 'scheduler'],
    meaning: 'Entries of the audit log are deleted after so long.',
  }),
  keySlots: optional({
    name: 'SERVICE_KEY_SLOTS',
    kind: integer({ min: 1, max: 1_000_000 }),
    defaultText: 'half of the slots that could serve the stage, at least 1',
    services: ['serve', 'scheduler'],
    meaning:
      'How many slots the stages of one key (a tenant, or a repository in the tenant `service`) may have while those of another wait for such slots; alone, a key may have them all. A tier can say another number (`keySlots`).',
  }),
  stageUids: variable({
    name: 'SERVICE_STAGE_UIDS',
    kind: uidRange(),
    default: { first: 200_000, last: 265_535 },
    defaultText: '`200000-265535`',
    services: ['serve', 'runner'],
    meaning:
      'Where the runner is root, stages of each key run as a user of their own from this range, which nothing else on the machine may use. `off`: as the runner itself.',
  }),
  stageDeny: variable({
    name: 'SERVICE_STAGE_DENY',
    kind: list(text('host')),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning:
      'Hosts and addresses that no stage in a sandbox is to reach, beside the broker and the store that the process itself is connected to.',
  }),
  stagePaths: variable({
    name: 'SERVICE_STAGE_PATHS',
    kind: list(text('path')),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning:
      'Folders that stages in a sandbox see, and cannot write to, beside `/usr`, `/etc`, `/opt` and the like: where tools lie elsewhere.',
  }),
  stageEnv: variable({
    name: 'SERVICE_STAGE_ENV',
    kind: lentVariables(),
    default: [],
    defaultText: 'none',
    secret: true,
    services: ['serve', 'runner'],
    meaning:
      "Variables of this process's own environment that every stage here is given, such as `HTTPS_PROXY,NO_PROXY`. Stages of all tenants can read them; what a pipeline says in `env` stands above.",
  }),
  stageMemoryBytes: optional({
    name: 'SERVICE_STAGE_MEMORY_BYTES',
    kind: integer({ min: 16 * 1024 ** 2, max: 2 ** 50 }),
    defaultText: "nine tenths of the machine's memory, divided by its slots",
    services: ['serve', 'runner'],
    meaning:
      'What one stage may take of the memory; beyond it, it is killed (`oom`). Its `resources` may ask for less.',
  }),
  stageProcesses: optional({
    name: 'SERVICE_STAGE_PROCESSES',
    kind: integer({ min: 16, max: 4_194_304 }),
    defaultText: '4096',
    services: ['serve', 'runner'],
    meaning: 'How many processes and threads one stage may have at a time; it is refused more.',
  }),
  stageDiskBytes: optional({
    name: 'SERVICE_STAGE_DISK_BYTES',
    kind: integer({ min: 1024 ** 2, max: 2 ** 50 }),
    defaultText: 'nine tenths of what is free at the start, divided by the slots',
    services: ['serve', 'runner'],
    meaning: "What the files of a stage's run may take of the disk, and one file of it; beyond it the stage is killed.",
  }),
  allowUnisolated: variable({
    name: 'SERVICE_ALLOW_UNISOLATED',
    kind: boolean(),
    default: false,
    services: ['serve', 'runner'],
    meaning:
      'Starts in production mode also where the machine gives no namespaces, so that stages see its other processes and can outlive their end.',
  }),
  executors: optional({
    name: 'SERVICE_EXECUTORS',
    kind: list(choice('process', 'sandbox', 'container', 'kubernetes'), 4),
    defaultText: 'what the runner finds',
    services: ['serve', 'runner'],
    meaning:
      'What stages may run in here, the most preferred first: a stage runs in the first that gives what it asks for. One that is named and not to be had is a start-up error.',
  }),
  untrustedIsolation: optional({
    name: 'SERVICE_UNTRUSTED_ISOLATION',
    kind: choice('none', 'sandbox', 'container'),
    defaultText: '`none` in development mode, else `sandbox`',
    services: ['serve', 'runner'],
    meaning:
      'The least isolation of a stage whose run is not trusted; there it has no way to link-local, private or own addresses of the machine. A runner that has none of it does not take such stages: they wait, and a warning says so.',
  }),
  k8sNamespace: optional({
    name: 'SERVICE_K8S_NAMESPACE',
    kind: text(),
    defaultText: 'none: no stage runs in a Pod',
    services: ['serve', 'runner'],
    meaning: 'Where stages run as Pods, with `kubernetes` among the executors: a namespace for nothing else.',
  }),
  k8sKubeconfig: optional({
    name: 'SERVICE_K8S_KUBECONFIG',
    kind: text(),
    defaultText: 'as `kubectl` finds it; in a Pod its service account',
    services: ['serve', 'runner', 'scaler'],
    meaning: 'The file that says where the cluster is and who we are there.',
  }),
  k8sImage: optional({
    name: 'SERVICE_K8S_IMAGE',
    kind: text(),
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning: 'The image of stages in Pods that name none; without it they fail there.',
  }),
  k8sGuardImage: optional({
    name: 'SERVICE_K8S_GUARD_IMAGE',
    kind: text(),
    defaultText: "the stage's own",
    services: ['serve', 'runner'],
    meaning:
      'The image of the guards of Pods, whose `sh` is to be linked statically (as in `busybox`): with it an image that was made against its guard reaches nothing either.',
  }),
  k8sSetupTimeout: variable({
    name: 'SERVICE_K8S_SETUP_TIMEOUT',
    kind: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: 5 * 60 * SECOND_MS,
    defaultText: '`5m`',
    services: ['serve', 'runner'],
    meaning: 'A Pod that has not been scheduled, pulled and started within this is given up, and its stage with it.',
  }),
  k8sNetworkPolicies: variable({
    name: 'SERVICE_K8S_NETWORK_POLICIES',
    kind: boolean(),
    default: false,
    services: ['serve', 'runner'],
    meaning:
      'Says that the cluster enforces the network policies of `deploy/k8s/executor.yaml`. Without it a stage that asks for less than an open network is refused there.',
  }),
  drain: variable({
    name: 'SERVICE_DRAIN',
    kind: duration({ minMs: 0, maxMs: DAY_MS }),
    default: 10 * 60 * SECOND_MS,
    defaultText: '`10m`',
    services: ['serve', 'runner'],
    meaning: 'Running stages get so long when the process is told to stop; what is not done by then counts as lost.',
  }),
  slots: optional({
    name: 'SERVICE_SLOTS',
    kind: integer({ min: 1, max: 1000 }),
    defaultText: 'as many as have 2 GiB of the memory each, from one to eight for each processor, at least 2',
    services: ['serve', 'runner'],
    meaning:
      'How many stages a runner executes at once; where `SERVICE_STAGE_MEMORY_BYTES` is set, the memory is divided by that. A warning says when all have been taken for five minutes while stages wait.',
  }),
  runnerLabels: variable({
    name: 'SERVICE_RUNNER_LABELS',
    kind: list(label()),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning: 'What a runner offers to stages that ask by `runs_on`.',
  }),
  logBytesMax: variable({
    name: 'SERVICE_LOG_BYTES_MAX',
    kind: integer({ min: 64 * 1024, max: 10 * 1024 ** 3 }),
    default: 16 * 1024 * 1024,
    services: ['serve', 'scheduler'],
    meaning:
      'Bytes of output kept for one attempt of a stage; of a longer one its beginning and its end, with a marker between them.',
  }),
  dashboardUrl: optional({
    name: 'SERVICE_DASHBOARD_URL',
    kind: url('http:', 'https:'),
    defaultText: '`SERVICE_BASE_URL`',
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: 'Where a browser is sent after its login, and what commit statuses link to.',
  }),
  gitHostProvider: optional({
    name: 'GIT_HOST_PROVIDER',
    kind: choice('github', 'gitlab', 'oidc'),
    defaultText: '`github`; in development mode without `GIT_HOST_CLIENT_ID` the embedded provider',
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: 'Who says who a user is.',
  }),
  gitHostBaseUrl: optional({
    name: 'GIT_HOST_BASE_URL',
    kind: url('http:', 'https:'),
    defaultText: "the provider's public address",
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: "The address of the provider's pages; of a server of one's own where there is one.",
  }),
  gitHostApiUrl: optional({
    name: 'GIT_HOST_API_URL',
    kind: url('http:', 'https:'),
    defaultText: "the provider's public address",
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: "The address of the provider's API.",
  }),
  gitHostIssuer: optional({
    name: 'GIT_HOST_ISSUER',
    kind: url('http:', 'https:'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    meaning: 'The issuer, with `GIT_HOST_PROVIDER=oidc`: over https, or on this machine.',
  }),
  gitHostClientId: optional({
    name: 'GIT_HOST_CLIENT_ID',
    kind: text('text'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    meaning:
      'Of the application that was registered with the provider. Without it logins answer 503 in production mode.',
  }),
  gitHostClientSecret: optional({
    name: 'GIT_HOST_CLIENT_SECRET',
    kind: text('text'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    secret: true,
    meaning: 'Of the same application.',
  }),
  admins: variable({
    name: 'SERVICE_ADMINS',
    kind: list(text('email, login or sub:…'), 1_000),
    default: [],
    defaultText: 'nobody',
    services: ['serve', 'auth'],
    meaning:
      'Who sees and changes the runs of the tenant `service`: emails that the provider has verified, logins at GitHub and GitLab, `sub:<subject>` with OpenID Connect.',
  }),
  allowedLogins: optional({
    name: 'SERVICE_ALLOWED_LOGINS',
    kind: list(text('email, login, sub:…, @domain or org:NAME'), 1_000),
    defaultText: 'everybody with an account at the provider',
    services: ['serve', 'auth'],
    meaning:
      'Who may log in at all: the forms of `SERVICE_ADMINS`, `@domain` for verified emails, `org:NAME` for organisations at GitHub and groups at GitLab.',
  }),
  defaultTier: variable({
    name: 'SERVICE_DEFAULT_TIER',
    kind: choice('free', 'pro', 'team', 'enterprise'),
    default: 'free',
    services: ['serve', 'auth'],
    meaning: 'The tier of new users.',
  }),
  tiersFile: optional({
    name: 'SERVICE_TIERS_FILE',
    kind: text('path'),
    defaultText: 'none',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'A JSON file whose limits stand above those of the built-in tiers.',
  }),
  tenantTier: optional({
    name: 'SERVICE_TENANT_TIER',
    kind: choice('free', 'pro', 'team', 'enterprise'),
    defaultText: 'none: no limits',
    services: ['serve', 'gateway', 'webhook-ingest'],
    meaning: 'The tier whose limits hold in the tenant `service`, for each repository.',
  }),
  introspection: variable({
    name: 'SERVICE_INTROSPECTION',
    kind: boolean(),
    default: true,
    services: ['serve', 'gateway'],
    meaning: 'Whether GraphQL answers questions about its schema.',
  }),
  streamsPerUser: variable({
    name: 'SERVICE_STREAMS_PER_USER',
    kind: integer({ min: 1, max: 1_000_000 }),
    default: 100,
    services: ['serve', 'gateway'],
    meaning: 'Log streams that a user, and that an address, may have open; beyond it 429.',
  }),
  trustProxy: variable({
    name: 'SERVICE_TRUST_PROXY',
    kind: list(addressRange()),
    default: [],
    defaultText: 'none',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Proxies whose `X-Forwarded-For` is believed.',
  }),
  rateLimitRead: variable({
    name: 'SERVICE_RATE_LIMIT_READ',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 240,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Reading requests a minute and client address; 0: no limit.',
  }),
  rateLimitApi: variable({
    name: 'SERVICE_RATE_LIMIT_API',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 240,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'GraphQL operations and authenticated writes a minute and client address; 0: no limit.',
  }),
  rateLimitWebhook: variable({
    name: 'SERVICE_RATE_LIMIT_WEBHOOK',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 600,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Webhook deliveries a minute and client address; 0: no limit.',
  }),
  webhookSecret: optional({
    name: 'SERVICE_WEBHOOK_SECRET',
    kind: text('text'),
    defaultText: 'none: unsigned deliveries are accepted',
    services: ['serve', 'webhook-ingest'],
    secret: true,
    meaning: 'What GitHub signs its deliveries with.',
  }),
  webhookToken: optional({
    name: 'SERVICE_WEBHOOK_TOKEN',
    kind: text('text'),
    defaultText: 'none: deliveries without a token are accepted',
    services: ['serve', 'webhook-ingest'],
    secret: true,
    meaning: 'What GitLab sends along with its deliveries.',
  }),
  webhookRequireSecret: variable({
    name: 'SERVICE_WEBHOOK_REQUIRE_SECRET',
    kind: boolean(),
    default: false,
    services: ['serve', 'webhook-ingest'],
    meaning: 'Refuses unsigned deliveries, and a start in production mode without a secret.',
  }),
  webhookUnsigned: optional({
    name: 'SERVICE_WEBHOOK_UNSIGNED',
    kind: boolean(),
    defaultText: '`true` while neither provider has a secret, else `false`',
    services: ['serve', 'webhook-ingest'],
    meaning:
      'Whether unsigned deliveries are accepted, as untrusted, from a provider without a secret. From one that has a secret they never are.',
  }),
  forkPolicy: variable({
    name: 'SERVICE_FORK_POLICY',
    kind: choice('approve', 'run', 'ignore'),
    default: 'approve',
    services: ['serve', 'webhook-ingest'],
    meaning:
      'What comes of a pull request from a fork: its run waits until somebody approves it, runs at once (untrusted all the same), or nothing.',
  }),
  webhookWaitSecs: variable({
    name: 'SERVICE_WEBHOOK_WAIT_SECS',
    kind: integer({ min: 0, max: 300 }),
    default: 8,
    services: ['serve', 'webhook-ingest'],
    meaning:
      'How long a delivery waits for the end of its run before it is answered; 0: it is answered once it is durable.',
  }),
  webhookPipeline: optional({
    name: 'SERVICE_WEBHOOK_PIPELINE',
    kind: text('path, or the text itself'),
    defaultText: 'none',
    services: ['serve', 'webhook-ingest'],
    meaning: "A pipeline that runs for every push in place of the repository's file.",
  }),
  webhookRepositories: optional({
    name: 'SERVICE_WEBHOOK_REPOSITORIES',
    kind: list(text('glob'), 1_000),
    defaultText: 'all',
    services: ['serve', 'webhook-ingest'],
    meaning: 'Which repositories that nobody has connected are accepted, as globs.',
  }),
  gitAllowedHosts: variable({
    name: 'SERVICE_GIT_ALLOWED_HOSTS',
    kind: list(text('host')),
    default: ['github.com', 'gitlab.com'],
    defaultText: '`github.com,gitlab.com`',
    services: ['serve', 'webhook-ingest', 'runner'],
    meaning: 'Hosts that repositories are cloned from in production mode, over https or ssh.',
  }),
  gitCredentialsFile: optional({
    name: 'SERVICE_GIT_CREDENTIALS_FILE',
    kind: text('path'),
    defaultText: 'none',
    services: ['serve', 'webhook-ingest', 'runner'],
    meaning: 'Credentials per host, in the form of `git credential-store`.',
  }),
  gitCacheBytesMax: variable({
    name: 'SERVICE_GIT_CACHE_BYTES_MAX',
    kind: integer({ min: 1024 * 1024, max: 10 * 1024 ** 4 }),
    default: 4 * 1024 ** 3,
    services: ['serve', 'webhook-ingest', 'runner'],
    meaning: 'Bytes of mirrored repositories kept on disk; those not used for longest go first.',
  }),
  gitHostAToken: optional({
    name: 'SERVICE_GIT_HOST_A_TOKEN',
    kind: text('text'),
    defaultText: 'none: no statuses',
    services: ['serve', 'webhook-ingest'],
    secret: true,
    meaning: 'With which commit statuses are written to GitHub.',
  }),
  gitHostBToken: optional({
    name: 'SERVICE_GIT_HOST_B_TOKEN',
    kind: text('text'),
    defaultText: 'none: no statuses',
    services: ['serve', 'webhook-ingest'],
    secret: true,
    meaning: 'With which commit statuses are written to GitLab.',
  }),
  extensionPolicy: variable({
    name: 'SERVICE_EXTENSION_POLICY',
    kind: choice('any', 'signed'),
    default: 'any',
    services: ['serve', 'registry', 'gateway'],
    meaning: '`signed`: extensions without a valid signature of their owner are neither published nor used.',
  }),
  objectsUrl: optional({
    name: 'SERVICE_OBJECTS_URL',
    kind: objectsUrl(),
    defaultText: 'a folder in the data folder; `nats:` for services apart',
    services: ['serve', 'registry', 'runner'],
    meaning: 'Where packages and other large objects are kept.',
  }),
  scalerPrometheusUrl: optional({
    name: 'SERVICE_SCALER_PROMETHEUS_URL',
    kind: origin(),
    defaultText: 'none: to be given',
    services: ['scaler'],
    meaning: 'The Prometheus that scrapes the schedulers.',
  }),
  scalerQuery: variable({
    name: 'SERVICE_SCALER_QUERY',
    kind: text(),
    default: DEMAND_QUERY,
    defaultText: 'stages that wait, and those that run, as in `k8s/components/keda`',
    services: ['scaler'],
    meaning: 'How many slots are needed: one figure. Where it has none, nothing changes.',
  }),
  scalerTarget: variable({
    name: 'SERVICE_SCALER_TARGET',
    kind: text(),
    default: 'penstock/statefulset/runner',
    services: ['scaler'],
    meaning: 'What is scaled: `<namespace>/statefulset/<name>` or `<namespace>/deployment/<name>`.',
  }),
  scalerSlots: variable({
    name: 'SERVICE_SCALER_SLOTS',
    kind: integer({ min: 1, max: 10_000 }),
    default: 8,
    services: ['scaler'],
    meaning: 'The slots of one runner.',
  }),
  scalerMin: variable({
    name: 'SERVICE_SCALER_MIN',
    kind: integer({ min: 0, max: 10_000 }),
    default: 0,
    services: ['scaler'],
    meaning: 'The fewest runners.',
  }),
  scalerMax: variable({
    name: 'SERVICE_SCALER_MAX',
    kind: integer({ min: 1, max: 10_000 }),
    default: 4,
    services: ['scaler'],
    meaning: 'The most runners.',
  }),
  scalerCooldown: variable({
    name: 'SERVICE_SCALER_COOLDOWN',
    kind: duration({ minMs: 0, maxMs: DAY_MS }),
    default: 5 * MINUTE_MS,
    services: ['scaler'],
    meaning: 'For how long fewer runners must do before there are fewer.',
  }),
  logLevel: variable({
    name: 'SERVICE_LOG_LEVEL',
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    services: withScaler(allServices),
    meaning: 'The least severe lines that a service writes about itself.',
  }),
} as const;

type Variables = typeof variables;
export type VariableKey = keyof Variables;
export type ValueOf<K extends VariableKey> =
  Variables[K] extends Variable<infer T, infer D> ? (undefined extends D ? T | undefined : T) : never;

/** Read by `npm start` before any service runs, and described there (`bootstrap/`). */
export const bootstrapVariables: readonly string[] = [
  'SERVICE_BROKER_RELEASE_URL',
  'SERVICE_BROKER_INDEX_URL',
  'SERVICE_BROKER_GO',
  'SERVICE_BROKER_TIMEOUT_SECS',
];

function variable<T>(declared: Omit<Variable<T, T>, 'default'> & { readonly default: NoInfer<T> }): Variable<T, T> {
  return declared;
}

function optional<T>(
  declared: Omit<Variable<T, undefined>, 'default'> & { readonly defaultText: string },
): Variable<T, undefined> {
  return { ...declared, default: undefined };
}

/** Blanks and control characters do not survive a header. A short one is warned of at the start: scripts and tests use them. */
function apiKey(): Kind<string> {
  return {
    form: 'at most 1,024 visible ASCII characters',
    parse: (value) =>
      /^[\x21-\x7e]{1,1024}$/.test(value) ? { value } : { problem: 'is to be at most 1,024 visible ASCII characters' },
  };
}

/** It opens everything: one that can be guessed is refused. */
function adminKey(): Kind<string> {
  return {
    form: '16 to 1,024 visible ASCII characters',
    parse: (value) =>
      /^[\x21-\x7e]{16,1024}$/.test(value)
        ? { value }
        : { problem: 'is to be 16 to 1,024 visible ASCII characters; make one with: openssl rand -hex 32' },
  };
}

/** Stands in subjects of the broker. */
function token(): Kind<string> {
  return {
    form: 'name',
    parse: (value) =>
      /^[A-Za-z0-9_-]{1,64}$/.test(value) ? { value } : { problem: 'is to be letters, digits, _ and -, at most 64' },
  };
}

function label(): Kind<string> {
  return {
    form: 'label',
    parse: (value) =>
      /^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,62}$/.test(value)
        ? { value }
        : { problem: 'is to be letters, digits and . _ : / -, at most 63' },
  };
}

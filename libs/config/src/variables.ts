/**
 * Every variable that configures a service, declared once: readers, help texts and the table of docs/operating.md are
 * made from it. A flag of `penstock serve`, where there is one, stands above its variable.
 */
import { boolean, choice, duration, integer, list, listenAddress, origin, powerOfTwo, storeUrl, text, url, type Kind } from './kinds.ts';

export type ServiceName = 'serve' | 'gateway' | 'scheduler' | 'runner' | 'auth' | 'registry' | 'webhook-ingest';

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

export const variables = {
  listen: variable({
    name: 'SERVICE_LISTEN', kind: listenAddress(), default: { host: '127.0.0.1', port: 8080 }, defaultText: '`127.0.0.1:8080`', services: ['serve', 'gateway'],
    meaning: 'Where the API listens. Any address that is not loopback means production mode.',
  }),
  internalListen: variable({
    name: 'SERVICE_INTERNAL_LISTEN', kind: listenAddress(), default: { host: '127.0.0.1', port: 9090 }, defaultText: '`127.0.0.1:9090`', services: ownProcesses,
    meaning: 'Where a service process answers `/health`, `/ready` and `/metrics`; for probes, not for clients. Port 0 takes a free one.',
  }),
  runnerId: optional({
    name: 'SERVICE_RUNNER_ID', kind: token(), defaultText: "the machine's name", services: ['runner'],
    meaning: 'The name of a runner, the same at each start, so that its workspaces are found again. No two runners share one.',
  }),
  mode: optional({
    name: 'SERVICE_MODE', kind: choice('development', 'production'), defaultText: 'development on a loopback address, else production', services: ['serve', 'gateway'],
    meaning: 'Production mode generates nothing and wants its secrets given. `development` is refused on an address that others can reach.',
  }),
  dataDir: variable({
    name: 'SERVICE_DATA_DIR', kind: text('folder'), default: '.penstock', services: ['serve', 'runner'],
    meaning: 'Where everything is kept; the same folder resumes its runs.',
  }),
  corsOrigins: variable({
    name: 'SERVICE_CORS_ORIGINS', kind: list(origin()), default: [], defaultText: 'none', services: ['serve', 'gateway'],
    meaning: 'Origins whose pages may call the API.',
  }),
  playground: variable({
    name: 'SERVICE_PLAYGROUND', kind: boolean(), default: false, services: ['serve', 'gateway'],
    meaning: 'Serves an IDE at `/graphql/playground`.',
  }),
  apiKey: optional({
    name: 'SERVICE_API_KEY', kind: apiKey(), defaultText: 'made and kept in the data folder in development mode', services: ['serve', 'gateway'], secret: true,
    requiredInProduction: 'make one with: openssl rand -hex 32',
    meaning: 'The key that programs present as `Authorization: Bearer`; it sees and changes the runs of the tenant `service`.',
  }),
  jwtSecret: optional({
    name: 'JWT_SECRET', kind: text('text'), defaultText: 'made and kept in the data folder in development mode', services: ['serve', 'gateway', 'auth'], secret: true,
    requiredInProduction: 'make one with: openssl rand -hex 32',
    meaning: 'Signs access tokens. At least 32 bytes: a shorter one is a warning in development mode and refused in production mode.',
  }),
  baseUrl: optional({
    name: 'SERVICE_BASE_URL', kind: url('http:', 'https:'), defaultText: 'the address listened on', services: ['serve', 'gateway'],
    meaning: 'The address under which clients reach the service.',
  }),
  publicRead: optional({
    name: 'SERVICE_PUBLIC_READ', kind: boolean(), defaultText: '`true` in development mode, else `false`', services: ['serve', 'gateway'],
    meaning: 'Whether everybody may read the runs of the tenant `service`.',
  }),
  triggerWaitSecs: variable({
    name: 'SERVICE_TRIGGER_WAIT_SECS', kind: integer({ min: 0, max: 300 }), default: 15, services: ['serve', 'gateway'],
    meaning: 'How long `triggerPipeline` waits for the end of the run before it answers.',
  }),
  natsUrl: optional({
    name: 'SERVICE_NATS_URL', kind: list(url('nats:', 'tls:', 'ws:', 'wss:')), defaultText: 'the embedded broker', services: allServices, secret: true,
    meaning: 'The addresses of a NATS cluster (2.14 or newer, with JetStream), user and password in them where it wants any.',
  }),
  natsServer: optional({
    name: 'SERVICE_NATS_SERVER', kind: text('path'), defaultText: 'the one that `npm start` found or brought along', services: ['serve'],
    meaning: 'The nats-server binary of the embedded broker.',
  }),
  natsSync: variable({
    name: 'SERVICE_NATS_SYNC', kind: choice('default', 'always'), default: 'default', services: ['serve'],
    meaning: '`always`: what is acknowledged survives a power cut, at a lower rate. `default`: it survives any killed process.',
  }),
  natsReplicas: optional({
    name: 'SERVICE_NATS_REPLICAS', kind: integer({ min: 1, max: 5 }), defaultText: '3 where the broker names a cluster, else 1', services: ['serve', 'scheduler'],
    meaning: 'Copies of each stream and bucket.',
  }),
  storeUrl: optional({
    name: 'SERVICE_STORE_URL', kind: storeUrl(), defaultText: 'a SQLite file in the data folder', services: ['serve', 'gateway', 'scheduler'], secret: true,
    meaning: 'Where run documents are kept.',
  }),
  partitions: optional({
    name: 'SERVICE_PARTITIONS', kind: powerOfTwo(256), defaultText: '1 for `serve`, else 16', services: ['serve', 'gateway', 'scheduler'],
    meaning: 'Into how many logs the runs are divided; fixed at the first start.',
  }),
  runnerLeaseSecs: variable({
    name: 'SERVICE_RUNNER_LEASE_SECS', kind: integer({ min: 6, max: 600 }), default: 15, services: ['serve', 'scheduler', 'runner'],
    meaning: 'A runner that is not heard of for so long has lost its stages. Higher bridges longer outages of the broker, and notices a loss later.',
  }),
  queueTimeout: variable({
    name: 'SERVICE_QUEUE_TIMEOUT', kind: duration({ minMs: SECOND_MS, maxMs: 365 * DAY_MS }), default: DAY_MS, defaultText: '`24h`', services: ['serve', 'scheduler'],
    meaning: 'A stage that no runner takes for so long fails with the reason `no_runner`.',
  }),
  slots: optional({
    name: 'SERVICE_SLOTS', kind: integer({ min: 1, max: 1000 }), defaultText: 'the number of processors', services: ['serve', 'runner'],
    meaning: 'How many stages a runner executes at once.',
  }),
  runnerLabels: variable({
    name: 'SERVICE_RUNNER_LABELS', kind: list(label()), default: [], defaultText: 'none', services: ['serve', 'runner'],
    meaning: 'What a runner offers to stages that ask by `runs_on`.',
  }),
  logBytesMax: variable({
    name: 'SERVICE_LOG_BYTES_MAX', kind: integer({ min: 64 * 1024, max: 10 * 1024 ** 3 }), default: 16 * 1024 * 1024, services: ['serve', 'scheduler'],
    meaning: 'Bytes of output kept for one attempt of a stage; a marker stands for the rest.',
  }),
  logLevel: variable({
    name: 'SERVICE_LOG_LEVEL', kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), default: 'info', services: allServices,
    meaning: 'The least severe lines that a service writes about itself.',
  }),
} as const;

export type Variables = typeof variables;
export type VariableKey = keyof Variables;
export type ValueOf<K extends VariableKey> = Variables[K] extends Variable<infer T, infer D> ? (undefined extends D ? T | undefined : T) : never;

/** Read by `npm start` before any service runs, and described there (`bootstrap/`). */
export const bootstrapVariables: readonly string[] = ['SERVICE_BROKER_RELEASE_URL', 'SERVICE_BROKER_INDEX_URL', 'SERVICE_BROKER_GO', 'SERVICE_BROKER_TIMEOUT_SECS'];

function variable<T>(declared: Omit<Variable<T, T>, 'default'> & { readonly default: NoInfer<T> }): Variable<T, T> {
  return declared;
}

function optional<T>(declared: Omit<Variable<T, undefined>, 'default'> & { readonly defaultText: string }): Variable<T, undefined> {
  return { ...declared, default: undefined };
}

/** Blanks and control characters do not survive a header. A short one is warned of at the start: scripts and tests use them. */
function apiKey(): Kind<string> {
  return {
    form: 'at most 1,024 visible ASCII characters',
    parse: (value) => (/^[\x21-\x7e]{1,1024}$/.test(value) ? { value } : { problem: 'is to be at most 1,024 visible ASCII characters' }),
  };
}

/** Stands in subjects of the broker. */
function token(): Kind<string> {
  return {
    form: 'name',
    parse: (value) => (/^[A-Za-z0-9_-]{1,64}$/.test(value) ? { value } : { problem: 'is to be letters, digits, _ and -, at most 64' }),
  };
}

function label(): Kind<string> {
  return {
    form: 'label',
    parse: (value) => (/^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,62}$/.test(value) ? { value } : { problem: 'is to be letters, digits and . _ : / -, at most 63' }),
  };
}

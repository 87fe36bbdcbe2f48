/** How a service is reached, under which name, and with which keys. */
import {
  boolean,
  choice,
  integer,
  list,
  listenAddress,
  origin,
  secretKey,
  secretKeys,
  text,
  url,
  type Kind,
} from '../kinds.ts';
import { optional, ownProcesses, variable, withScaler } from './declared.ts';

export const serviceVariables = {
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
} as const;

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

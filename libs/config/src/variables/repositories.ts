/** Deliveries of git hosts, what runs for them, and how repositories are read and told. */
import { boolean, choice, integer, list, text } from '../kinds.ts';
import { optional, variable } from './declared.ts';

export const repositoryVariables = {
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
} as const;

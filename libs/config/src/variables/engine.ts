/** Broker and store, how the runs are divided, and for how long what of them is kept. */
import { choice, duration, integer, list, powerOfTwo, storeUrl, text, url } from '../kinds.ts';
import { allServices, DAY_MS, optional, SECOND_MS, variable } from './declared.ts';

export const engineVariables = {
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
} as const;

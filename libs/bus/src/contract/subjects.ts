/** Every subject, stream and bucket name; nobody else spells one. Tokens are ids made by us: no dots, blanks or wildcards. */

export const subjects = {
  journal: (partition: number) => `journal.${partition}`,
  owner: (partition: number, verb: OwnerVerb) => `run.${partition}.${verb}`,
  result: (partition: number, runner: string) => `run.${partition}.result.${runner}`,
  /** What the owner of a partition alone subscribes to. */
  ownerAll: (partition: number) => `run.${partition}.>`,
  events: (runId: string) => `events.${runId}`,
  opened: (partition: number | '*') => `opened.${partition}`,
  released: (partition: number | '*') => `released.${partition}`,
  /** Asks for a scheduler that can commit at present; the others do not listen. */
  committing: 'committing',
  /** Asks a scheduler how it stands: one by its name, or under `any` whichever answers. */
  status: (scheduler: string | 'any' | '*') => `status.${scheduler}`,
  demand: (scheduler: string | '*') => `demand.${scheduler}`,
  /** The same for the runners of one tenant: of that tenant's stages alone. */
  demandOfTenant: (scheduler: string | '*', tenant: string) => `demand.${scheduler}.${tenant}`,
  pull: (scheduler: string, runner: string | '*') => `pull.${scheduler}.${runner}`,
  job: (runner: string) => `job.${runner}`,
  stop: (runner: string) => `stop.${runner}`,
  release: (runner: string) => `release.${runner}`,
  log: (runId: string, runner: string) => `log.${runId}.${runner}`,
  /** Where what a tenant's runner writes comes to instead (`subject`: its own name for it), for who looks at it before it is stored. */
  looked: (subject: string) => `looked.${subject}`,
  /** All runners' chunks of a run, as stored. */
  logOfRun: (runId: string) => `log.${runId}.*`,
  /** Chunks as republished once stored, with `Nats-Sequence` and `Nats-Last-Sequence`: the live tail. */
  liveLogOfRun: (runId: string) => `live.log.${runId}.*`,
  /** A push that was taken in, by what the processing takes turns between and the hash that identifies it (P24). */
  delivery: (lane: string | '*', id: string | '*') => `delivery.${lane}.${id}`,
  /** As earlier releases stored it, which named no lane. */
  deliveryWithoutLane: (id: string | '*') => `delivery.${id}`,
  /** What became of deliveries, once decided. */
  decided: 'ingest.decided',
  /** Connected repositories have changed: what is remembered of them is asked for anew. */
  connections: 'ingest.connections',
  /** Deliveries of these outgoing webhooks stand in the outbox. */
  hooksWaiting: 'hooks.waiting',
  /** A request to one of the services that keep no partition; any process of it answers. */
  service: (service: 'auth' | 'registry' | 'webhook-ingest', verb: string) => `svc.${service}.${verb}`,
  /** Of a runner that stores what an attempt leaves, or fetches what earlier ones have left. */
  artifacts: (runner: string, verb: string) => `svc.registry.artifacts.${runner}.${verb}`,
  /** To the very process that has begun to take an upload in. */
  upload: (runner: string, upload: string) => `svc.registry.upload.${runner}.${upload}`,
  /** A runner asks auth for what a slip names (P31). */
  slip: (runner: string) => `slip.${runner}`,
  /** The ingest asks auth for what opens a connected repository: no verb of `svc.auth`, for the gateway may ask all of those. */
  cloneSecret: 'clone',
  /** From one registry to the others: what has changed in the store. */
  registryChanged: 'registry.changed',
  /** Processes of one service tell each other that they live. */
  alive: (service: PeerService) => `alive.${service}`,
} as const;

type OwnerVerb =
  | 'create'
  | 'cancel'
  | 'approve'
  | 'delete'
  | 'decide'
  | 'get'
  | 'watch'
  | 'waits'
  | 'open'
  | 'attempt'
  | 'schedule'
  | 'schedules'
  | 'pause';

export type PeerService = 'gateway' | 'auth' | 'registry' | 'webhook-ingest';

export const streams = { journal: 'JOURNAL', logs: 'LOGS', deliveries: 'DELIVERIES' } as const;
export const buckets = {
  members: 'members',
  runners: 'runners',
  revocations: 'revocations',
  controls: 'controls',
} as const;
/** Who is in the fleet (P37); made where runners of a fleet are let in. */
export const FLEET_BUCKET = 'fleet';

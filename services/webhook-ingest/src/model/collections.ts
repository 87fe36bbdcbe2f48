/** What the ingest keeps in the store. */
import { cloneSecretsSpec, type CollectionSpec } from '@penstock/store';

/** What was decided about a delivery. The first insert stands (P24); its own later steps replace it. */
export const deliveriesSpec = {
  name: 'deliveries',
  fields: {
    tenant: 'string',
    /** The host's id of it. */
    deliveryId: 'string',
    /** '' where none was to come of it. */
    runId: 'string',
    repository: 'string',
    /** Milliseconds since 1970. */
    receivedAt: 'integer',
    revision: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  /** JSON of the `Delivery` and of the `Decision`. */
  parts: ['delivery', 'decision'],
  indexes: [['tenant', 'receivedAt'], ['deliveryId'], ['runId'], ['receivedAt']],
  version: ['revision', 'step'],
} as const satisfies CollectionSpec;

/** A repository that a user has connected. */
export const connectionsSpec = {
  name: 'connections',
  fields: {
    userId: 'string',
    provider: 'string',
    /** In lower case: hosts do not tell by it. */
    repositoryKey: 'string',
    /** As the user wrote it. */
    repository: 'string',
    createdAt: 'integer',
  },
  /** The secret, encrypted: a signature cannot be checked by a hash of it. */
  parts: ['secret'],
  indexes: [
    ['provider', 'repositoryKey'],
    ['userId', 'createdAt'],
  ],
} as const satisfies CollectionSpec;

/** That a connection was proved; the id is the connection's. */
export const proofsSpec = {
  name: 'connection_proofs',
  fields: {
    /** Of the connection: one that was made anew has to be proved anew. */
    createdAt: 'integer',
    /** The host on which the ref was found. */
    host: 'string',
    provedAt: 'integer',
  },
  parts: [],
  indexes: [],
} as const satisfies CollectionSpec;

/** The state that a git host is to show for a commit under one name; the id is a hash of these. Of earlier releases: one for each run, by its id. */
export const statusesSpec = {
  name: 'commit_statuses',
  fields: {
    /** What takes turns; '' in documents of earlier releases. */
    lane: 'string',
    /** The host has the final one, or will never take it; since `dueAt`. */
    done: 'boolean',
    /** When it is to be looked at again, in milliseconds since 1970. */
    dueAt: 'integer',
    /** Until then somebody tells of it; 0: nobody does. */
    claimedUntil: 'integer',
    /** What the host was last sent: '', `pending`, `success` or `failure`. */
    sent: 'string',
    failures: 'integer',
    revision: 'integer',
    step: 'integer',
  },
  /** JSON of the `StatusTarget`. */
  parts: ['target'],
  indexes: [['done', 'dueAt'], ['done', 'lane', 'dueAt'], ['done', 'lane'], ['claimedUntil']],
  version: ['revision', 'step'],
} as const satisfies CollectionSpec;

export const ingestCollections: readonly CollectionSpec[] = [
  deliveriesSpec,
  connectionsSpec,
  proofsSpec,
  cloneSecretsSpec,
  statusesSpec,
];

/** Set-up of everything that JetStream keeps for us, the same at every start of every service. */
import { DiscardPolicy, jetstreamManager, JetStreamApiError, type JetStreamManager, RetentionPolicy, StorageType, type StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { Bus } from './bus.ts';
import { PartitionsMismatch } from './errors.ts';
import { wireOf } from './nats-bus.ts';
import { StoreCode } from './stored.ts';
import { buckets, streams } from './subjects.ts';

export interface StreamsOptions {
  /** P9: a power of two. Stands in JOURNAL's metadata once it exists. */
  readonly partitions: number;
  /** P25; default 3 where the server names a cluster, else 1. */
  readonly replicas?: number | undefined;
  /** The broker reserves these: together they must fit its `max_file_store`. Default 2 GiB. */
  readonly journalBytesMax?: number | undefined;
  /** Default 4 GiB; the oldest chunks go first. */
  readonly logsBytesMax?: number | undefined;
  /** Default 7 days. */
  readonly logsAgeMsMax?: number | undefined;
}

const PARTITIONS_KEY = 'penstock.partitions';
const JOURNAL_BYTES_MAX = 2 * 1024 ** 3;
const LOGS_BYTES_MAX = 4 * 1024 ** 3;
const LOGS_AGE_MS_MAX = 7 * 24 * 3_600_000;
/** No message id is used in JOURNAL: the window is as short as it can sensibly be, so that nothing is remembered in vain. */
const DUPLICATE_WINDOW_MS = 1_000;
/** Expiry markers outlive any reconnect that a watch rides out; one that took longer resynchronises by absence. */
const MARKER_TTL_MS = 60_000;
/** A cluster that has just started needs a moment for its first stream. */
const SETUP_TIMEOUT_MS = 15_000;

/** Creates what is missing and adjusts what may be adjusted. Idempotent. Throws `PartitionsMismatch`. */
export async function ensureStreams(bus: Bus, options: StreamsOptions): Promise<{ readonly bucketsCreated: boolean }> {
  const { connection } = wireOf(bus);
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: SETUP_TIMEOUT_MS });
  const replicas = options.replicas ?? (connection.info?.cluster ? 3 : 1);
  await ensureStream(manager, journalConfig(options, replicas), (stored) => checkPartitions(stored, options.partitions));
  await ensureStream(manager, logsConfig(options, replicas));
  let bucketsCreated = false;
  for (const bucket of [buckets.members, buckets.runners]) {
    bucketsCreated = (await ensureStream(manager, bucketConfig(bucket, replicas))) || bucketsCreated;
  }
  return { bucketsCreated };
}

/** P17: forgets all memberships and runner leases; call `ensureStreams` afterwards. */
export async function deleteBuckets(bus: Bus): Promise<void> {
  const manager = await jetstreamManager(wireOf(bus).connection, { checkAPI: false, timeout: SETUP_TIMEOUT_MS });
  for (const bucket of [buckets.members, buckets.runners]) {
    try {
      await manager.streams.delete(bucketStream(bucket));
    } catch (error) {
      if (!hasCode(error, StoreCode.streamNotFound)) throw error;
    }
  }
}

/** The stream behind a KV bucket. */
export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

type Wanted = Partial<StreamConfig> & { readonly name: string; readonly subjects: string[] };

function journalConfig(options: StreamsOptions, replicas: number): Wanted {
  return {
    name: streams.journal,
    subjects: ['journal.*'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes: options.journalBytesMax ?? JOURNAL_BYTES_MAX,
    num_replicas: replicas,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    deny_delete: true,
    allow_direct: true,
    metadata: { [PARTITIONS_KEY]: String(options.partitions) },
  };
}

function logsConfig(options: StreamsOptions, replicas: number): Wanted {
  return {
    name: streams.logs,
    subjects: ['log.>'],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_bytes: options.logsBytesMax ?? LOGS_BYTES_MAX,
    max_age: nanos(options.logsAgeMsMax ?? LOGS_AGE_MS_MAX),
    num_replicas: replicas,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    allow_direct: true,
    republish: { src: 'log.>', dest: 'live.log.>' },
  };
}

/** The configuration of a KV bucket with history 1 and markers, spelled out: P5 needs exactly this. */
function bucketConfig(bucket: string, replicas: number): Wanted {
  return {
    name: bucketStream(bucket),
    subjects: [`$KV.${bucket}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    num_replicas: replicas,
    allow_direct: true,
    allow_rollup_hdrs: true,
    deny_delete: true,
    allow_msg_ttl: true,
    subject_delete_marker_ttl: nanos(MARKER_TTL_MS),
  };
}

/** True: it was created. */
async function ensureStream(manager: JetStreamManager, wanted: Wanted, check: (stored: StreamConfig) => void = () => {}): Promise<boolean> {
  let stored = await find(manager, wanted.name);
  if (stored === null) {
    try {
      await manager.streams.add(wanted);
      return true;
    } catch (error) {
      // Another service was faster, and its options differ: judged like one that was there before.
      if (!hasCode(error, StoreCode.streamNameInUse)) throw error;
      stored = await find(manager, wanted.name);
      if (stored === null) throw error;
    }
  }
  check(stored);
  if (differs(stored, wanted)) await manager.streams.update(wanted.name, { ...wanted, metadata: { ...stored.metadata, ...wanted.metadata } });
  return false;
}

async function find(manager: JetStreamManager, name: string): Promise<StreamConfig | null> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (hasCode(error, StoreCode.streamNotFound)) return null;
    throw error;
  }
}

/** Of what an operator may change between two starts. */
function differs(stored: StreamConfig, wanted: Wanted): boolean {
  const changeable = ['max_bytes', 'max_age', 'num_replicas'] as const;
  return changeable.some((field) => wanted[field] !== undefined && wanted[field] !== stored[field]);
}

function checkPartitions(stored: StreamConfig, partitions: number): void {
  const number = Number(stored.metadata?.[PARTITIONS_KEY]);
  if (number !== partitions) throw new PartitionsMismatch(number, partitions);
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}

/** Set-up of everything that JetStream keeps for us, the same at every start of every service. */
import {
  DiscardPolicy,
  jetstreamManager,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream';
import { nanos, NoRespondersError, TimeoutError } from '@nats-io/transport-node';
import { backoffMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { PartitionsMismatch } from '../contract/errors.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { api, StoreCode } from './stored.ts';
import { isFleetRunner } from '../contract/fleet.ts';
import { buckets, FLEET_BUCKET, streams, subjects } from '../contract/subjects.ts';

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
  /** Default 1 GiB, or a sixth of a journal whose size is given. When they are used up, processed deliveries go before their hour is over, and without any new ones are refused. */
  readonly deliveriesBytesMax?: number | undefined;
  /** The same, by count. Default a million. */
  readonly deliveriesMax?: number | undefined;
  /** The sequence of the first delivery, where their stream is made now. Default: see `sequenceByTime`. */
  readonly deliveriesFrom?: number | undefined;
  /** Whether runners of a fleet are let in, so that there is a bucket of theirs. */
  readonly fleet?: boolean | undefined;
}

const PARTITIONS_KEY = 'penstock.partitions';
const JOURNAL_BYTES_MAX = 2 * 1024 ** 3;
const LOGS_BYTES_MAX = 4 * 1024 ** 3;
/** A million deliveries of usual size, or 4,000 of the longest that are taken: hosts never send again what was refused. */
const DELIVERIES_BYTES_MAX = 1024 ** 3;
const DELIVERIES_MAX = 1_000_000;
const LOGS_AGE_MS_MAX = 7 * 24 * 3_600_000;
/** No message id is used in JOURNAL: the window is as short as it can sensibly be, so that nothing is remembered in vain. */
const DUPLICATE_WINDOW_MS = 1_000;
/** Expiry markers outlive any reconnect that a watch rides out; one that took longer resynchronises by absence. */
const MARKER_TTL_MS = 60_000;
/** A leader answers in far less; no answer means that there is none yet. */
const SETUP_TRY_MS = 2_000;
/** A cluster that has just started elects within 10 s. */
const SETUP_DEADLINE_MS = 30_000;

/**
 * Creates what is missing and adjusts what may be adjusted. Idempotent. Throws `PartitionsMismatch`.
 *
 * A cluster leaves a request about a stream that has no leader yet without any answer, so each is given up soon and the
 * whole is begun again: right after a start, and when several services set up at once.
 */
export async function ensureStreams(bus: Bus, options: StreamsOptions): Promise<{ readonly bucketsCreated: boolean }> {
  const created = new Set<string>();
  const deadline = performance.now() + SETUP_DEADLINE_MS;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await ensureOnce(bus, options, created);
      return { bucketsCreated: [buckets.members, buckets.runners].some((bucket) => created.has(bucketStream(bucket))) };
    } catch (error) {
      if (!mayPass(error) || performance.now() >= deadline) throw error;
      await pause(backoffMs(attempt, BROKER_BACKOFF));
    }
  }
}

async function ensureOnce(bus: Bus, options: StreamsOptions, created: Set<string>): Promise<void> {
  const { connection } = wireOf(bus);
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: SETUP_TRY_MS });
  const replicas = options.replicas ?? (connection.info?.cluster ? 3 : 1);
  await ensureStream(manager, created, journalConfig(options, replicas), (stored) =>
    checkPartitions(stored, options.partitions),
  );
  await ensureStream(manager, created, logsConfig(options, replicas));
  await ensureStream(manager, created, deliveriesConfig(options, replicas));
  const wanted = [...Object.values(buckets), ...(options.fleet === true ? [FLEET_BUCKET] : [])];
  for (const bucket of wanted) await ensureStream(manager, created, bucketConfig(bucket, replicas));
}

/** No answer, no leader, or a leader that does not know yet what another one has done. */
function mayPass(error: unknown): boolean {
  if (error instanceof JetStreamApiError)
    return [StoreCode.streamNotFound, StoreCode.streamNameInUse, StoreCode.unavailable].some(
      (code) => code === error.code,
    );
  return (
    error instanceof TimeoutError ||
    error instanceof NoRespondersError ||
    (error instanceof Error && error.cause instanceof NoRespondersError)
  );
}

/**
 * P17: forgets the memberships and leases of those who are proven dead, and who is in the fleet; call `ensureStreams` afterwards.
 * False: runners of the fleet held leases, and they are on other machines, where nothing proves them dead. Their leases stay, and
 * what is missing in these buckets is judged as ever (P5).
 */
export async function deleteBuckets(bus: Bus): Promise<boolean> {
  const manager = await jetstreamManager(wireOf(bus).connection, { checkAPI: false, timeout: SETUP_DEADLINE_MS / 2 });
  const { members, runners } = buckets;
  const held = await runnersIn(manager, bucketStream(runners));
  const isAllDead = !held.some(isFleetRunner);
  for (const bucket of [FLEET_BUCKET, ...(isAllDead ? [members, runners] : [])]) {
    try {
      await manager.streams.delete(bucketStream(bucket));
    } catch (error) {
      if (!hasCode(error, StoreCode.streamNotFound)) throw error;
    }
  }
  if (isAllDead) return true;
  // Emptied and not made anew: a young bucket says nothing about who is not in it.
  await manager.streams.purge(bucketStream(members));
  for (const runner of held.filter((each) => !isFleetRunner(each)))
    await manager.streams.purge(bucketStream(runners), { filter: `$KV.${runners}.${runner}.>` });
  return false;
}

/** Also those whose lease is over since a moment ago. */
async function runnersIn(manager: JetStreamManager, stream: string): Promise<string[]> {
  try {
    const { state } = await manager.streams.info(stream, { subjects_filter: '>' });
    return [...new Set(Object.keys(state.subjects ?? {}).map((subject) => subject.split('.')[2] ?? ''))];
  } catch (error) {
    if (hasCode(error, StoreCode.streamNotFound)) return [];
    throw error;
  }
}

/** How long ago the bucket was made, by the broker's clock: what a younger one lacks may have been in an earlier one (P5). */
export async function bucketAgeMs(bus: Bus, bucket: string): Promise<number> {
  const { created, ts } = await api<{ created: string; ts: string }>(
    wireOf(bus),
    `STREAM.INFO.${bucketStream(bucket)}`,
    undefined,
    SETUP_TRY_MS,
  );
  return Date.parse(ts) - Date.parse(created);
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

/** P24. One message a subject: the expectation of 0 refuses a second one, the limit only says so. */
function deliveriesConfig(options: StreamsOptions, replicas: number): Wanted {
  return {
    name: streams.deliveries,
    subjects: [subjects.delivery('*', '*'), subjects.deliveryWithoutLane('*')],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes:
      options.deliveriesBytesMax ??
      Math.min(DELIVERIES_BYTES_MAX, Math.floor((options.journalBytesMax ?? Infinity) / 6)),
    max_msgs: options.deliveriesMax ?? DELIVERIES_MAX,
    first_seq: options.deliveriesFrom ?? sequenceByTime(),
    num_replicas: replicas,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    allow_direct: true,
  };
}

/**
 * P27, P28: of two deliveries the later has the higher sequence, also where the stream was deleted between them. For that a stream begins at the microsecond
 * in which it is made, which no stream before it has come to that took in less than a million a second.
 */
function sequenceByTime(): number {
  return Date.now() * 1000;
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

async function ensureStream(
  manager: JetStreamManager,
  created: Set<string>,
  wanted: Wanted,
  check: (stored: StreamConfig) => void = () => {},
): Promise<void> {
  let stored = await find(manager, wanted.name);
  if (stored === null) {
    // Also where the answer stays away: better one lease of waiting in vain than a bucket taken for an old one.
    created.add(wanted.name);
    try {
      await manager.streams.add(wanted);
      return;
    } catch (error) {
      // Another service was faster, and its options differ: judged like one that was there before.
      if (!hasCode(error, StoreCode.streamNameInUse)) throw error;
      created.delete(wanted.name);
      stored = await find(manager, wanted.name);
      if (stored === null) throw error;
    }
  }
  check(stored);
  if (!differs(stored, wanted)) return;
  const { first_seq: _whereItBegan, ...adjusted } = wanted;
  await manager.streams.update(wanted.name, { ...adjusted, metadata: { ...stored.metadata, ...wanted.metadata } });
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
  const changeable = ['max_bytes', 'max_msgs', 'max_age', 'num_replicas'] as const;
  return (
    changeable.some((field) => wanted[field] !== undefined && wanted[field] !== stored[field]) ||
    // An earlier release has made it: subjects are added, never taken away.
    wanted.subjects.some((subject) => !stored.subjects.includes(subject))
  );
}

function checkPartitions(stored: StreamConfig, partitions: number): void {
  const number = Number(stored.metadata?.[PARTITIONS_KEY]);
  if (number !== partitions) throw new PartitionsMismatch(number, partitions);
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}

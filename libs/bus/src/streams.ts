import type { Bus } from './bus.ts';

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

/** Creates what is missing and adjusts what may be adjusted. Idempotent. Throws `PartitionsMismatch`. */
export declare function ensureStreams(bus: Bus, options: StreamsOptions): Promise<{ readonly bucketsCreated: boolean }>;

/** P17: forgets all memberships and runner leases; call `ensureStreams` afterwards. */
export declare function deleteBuckets(bus: Bus): Promise<void>;

/** What a scheduler is started with, and what can be asked of it. */
import type { Bus } from '@penstock/bus';
import type { RunsLedger } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import type { Retention } from './retention-sweep.ts';
import type { Meter } from '@penstock/telemetry/metrics';
import type { Tracer } from '@penstock/telemetry/traces';

export interface SchedulerOptions {
  readonly bus: Bus;
  readonly ledger: RunsLedger;
  readonly log: Log;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** Default: it sends no traces. */
  readonly tracer?: Tracer | undefined;
  readonly partitions: number;
  /** Default `MEMBERSHIP_MS`. */
  readonly membershipMs?: number | undefined;
  /** L: how long a runner's lease lives. Default `RUNNER_LEASE_MS`. */
  readonly runnerLeaseMs?: number | undefined;
  /** Default 24 h. */
  readonly queueTimeoutMs?: number | undefined;
  /** How many slots a key may have while another waits. Default: half of those that could serve the stage. */
  readonly keySlots?: number | undefined;
  /**
   * Whether the buckets of leases were deleted on purpose, with the proof that nobody in them lives (P17). Default false:
   * what is missing in a bucket that is younger than a lease may live all the same (P5).
   */
  readonly leasesProvenDead?: boolean | undefined;
  /** Whether runners of a fleet may come, so that there is a bucket of theirs (P37). Default false. */
  readonly fleet?: boolean | undefined;
  /** Of output kept for each attempt. Default 16 MiB. */
  readonly logBytesMax?: number | undefined;
  /** Of kept files whose stage does not say; default 30 days. */
  readonly artifactExpireMs?: number | undefined;
  /** About how much memory live runs may take; what comes on top waits outside or is refused. Default: 40 % of the heap. */
  readonly liveBytesMax?: number | undefined;
  /** How long a run of a fork waits for its approval. Default 30 days. */
  readonly approvalMs?: number | undefined;
  /** What is old is deleted; default: nothing is. */
  readonly retention?: Retention | undefined;
  /** Of one repository: runs that wait for an approval. Default 100. */
  readonly heldMax?: number | undefined;
  /** Of 32 bytes in base64, shared with auth; without it no stage gets a secret. */
  readonly slipKey?: string | undefined;
}

export interface Scheduler {
  /** The present member id; a new one after each joining. */
  readonly member: string;
  /** How many partitions it answers for. */
  readonly owned: number;
  /** How many samples of its memory have found an invariant broken: any is a fault of the code. */
  readonly brokenInvariants: number;
  /** Why it cannot commit at present: the broker has not stored its last renewal, or the last try of a commit. Undefined where it can. */
  readonly trouble: string | undefined;
  /** Resolves when every partition has been opened that should be this scheduler's as things stand. */
  settled(): Promise<void>;
  /** Hands its partitions over and leaves. */
  close(): Promise<void>;
}

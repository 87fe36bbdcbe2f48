/**
 * Looks at what runners of single tenants would store at the broker (P37), so that it costs their tenant alone: chunks of logs, and
 * leases. It owns how much each has stored; what it refuses is answered as stored, or not at all, as its runner goes on best.
 *
 *  WRITES-1 A chunk is stored for an attempt that lives with this very runner, as the run's owner says, and for so many bytes of it. Others
 *     are kept nowhere. What the broker does not say it has stored counts for nothing.
 *  WRITES-2 Of `LOGS` a tenant's own runners hold a share at most, and those of all tenants together another; what comes beyond is not
 *     answered, and comes again, until what is there has been archived or deleted.
 *  WRITES-3 A runner holds so many leases, each of a bounded size, with an end, and in the form that schedulers read; it writes so many a
 *     second.
 *  WRITES-4 What waits for an answer, of a run's owner or of the broker, is bounded in bytes, with a share for each runner. What comes beyond is not
 *     answered, and comes again.
 */
import { FairRoom, type RoomBounds } from '@penstock/async';
import { type Bus, type BusSubscription, decodeChunk, loggedRuns, lookAtWrites, type LookedWrite } from '@penstock/bus';
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import { isRunId, type RunId } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { LivingAttempts } from './living-attempts.ts';
import { LogShares } from './log-shares.ts';
import { RunnerLeases } from './runner-leases.ts';

export interface TenantWritesOptions {
  readonly bus: Bus;
  readonly partitions: number;
  /** Of `LOGS`. */
  readonly logsBytesMax: number;
  /** Of an attempt, as schedulers tell runners. */
  readonly logBytesMax: number;
  readonly log: Pick<Log, 'warn'>;
  /** Default `LOOK_MS`. */
  readonly lookMs?: number | undefined;
  /** How long the owner of a run is waited for; default 4 s. */
  readonly ownerMs?: number | undefined;
}

/** 64 KiB of output, and a head. */
const CHUNK_BYTES_MAX = 96 * 1024;
/** A chunk may come twice, and lines of the runner itself come on top. */
const LOG_MARGIN = 1.5;
const LOG_MARGIN_BYTES = 1024 * 1024;
/** Twice what a runner writes before it waits for an answer, and some of the largest chunks whatever others hold: 98 MiB of 200 machines. */
const UNDER_WAY: RoomBounds = { shared: 48 * 1024 * 1024, own: 256 * 1024 };
/** What one write takes beside its bytes: many small ones are as good a way to fill memory. */
const WRITE_BYTES = 2 * 1024;
/** Between two looks at what `LOGS` still holds, while somebody has used up a share. */
const LOOK_MS = 10_000;

export function lookAtTenantWrites(options: TenantWritesOptions): BusSubscription {
  const { bus, log, partitions } = options;
  const attempts = new LivingAttempts(bus, partitions, options.ownerMs);
  const shares = new LogShares(options.logsBytesMax);
  const leases = new RunnerLeases();
  const underWay = new FairRoom(UNDER_WAY);
  const attemptBytesMax = options.logBytesMax * LOG_MARGIN + LOG_MARGIN_BYTES;
  const chunk = async (write: LookedWrite): Promise<void> => {
    const named = namedBy(write);
    if (named === null) return write.swallow();
    const attempt = attempts.of(write.runner, named);
    const tenant = await attempt.tenant;
    if (tenant === null || attempt.bytes + write.bytes.length > attemptBytesMax) return write.swallow();
    if (!shares.take(tenant, named.runId, write.bytes.length)) return;
    attempt.bytes += write.bytes.length;
    if (await write.pass()) return;
    // It comes again, and again while a broker's disk is full: counted each time, all that follows would be kept nowhere.
    attempt.bytes -= write.bytes.length;
    shares.giveBack(tenant, named.runId, write.bytes.length);
  };
  const lease = async (write: LookedWrite): Promise<void> => {
    if (leases.take(write)) await write.pass();
  };
  const subscription = lookAtWrites(bus, (write) => {
    const { kind, runner } = write;
    const bytes = write.size + WRITE_BYTES;
    if (!underWay.take(runner, bytes)) return;
    (kind === 'lease' ? lease(write) : chunk(write))
      // Its owner could not say: the chunk comes again.
      .catch((error: unknown) => log.warn({ err: error, runner }, `a ${kind} is not stored yet`))
      .finally(() => underWay.giveBack(runner, bytes));
  });
  const timer = setInterval(() => {
    if (!shares.isShort) return;
    loggedRuns(bus).then(
      (found) => shares.stillThere(found),
      (error: unknown) => log.warn({ err: error }, 'it could not be looked up which logs are still stored; later'),
    );
  }, options.lookMs ?? LOOK_MS);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      subscription.stop();
    },
  };
}

/** Null: no chunk that a runner may write. */
function namedBy({
  of,
  bytes,
}: LookedWrite): { readonly runId: RunId; readonly stage: string; readonly attempt: number } | null {
  if (!isRunId(of) || bytes.length > CHUNK_BYTES_MAX) return null;
  try {
    const { stage, attempt, mark } = decodeChunk(bytes);
    const isStage = typeof stage === 'string' && stage.length <= PIPELINE_LIMITS.expandedNameLengthMax;
    const isNamed = isStage && Number.isSafeInteger(attempt) && mark === undefined;
    return isNamed ? { runId: of, stage, attempt } : null;
  } catch {
    return null;
  }
}

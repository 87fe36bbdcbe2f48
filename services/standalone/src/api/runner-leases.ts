/**
 * Whether a lease that a tenant's runner would write is one: schedulers keep each in memory as it stands, and everybody reads from it. It
 * owns, by runner, which sessions have one and until when; bounded in memory by the runners there may be.
 */
import type { LookedWrite, RunnerLease } from '@penstock/bus';

/** As many attempts as any runner has slots, each with long names. */
const LEASE_BYTES_MAX = 256 * 1024;
/** One that starts again and again has some that are not over yet. */
const SESSIONS_MAX = 8;
/** `SERVICE_RUNNER_LEASE_SECS` at most. */
const TTL_MS = { min: 1_000, max: 600_000 };
/** Twice what the shortest lease is renewed at, and some tries at once. */
const WRITES_PER_SECOND = 2;
const WRITES_AT_ONCE = 20;
/** More than a server has runners at a time. */
const RUNNERS_MAX = 1_000;
const TEXTS_MAX = 200;
const TEXT_LENGTH_MAX = 200;

interface Known {
  /** Until when each lives. */
  readonly sessions: Map<string, number>;
  writes: number;
  at: number;
}

type Lease = Pick<LookedWrite, 'runner' | 'of' | 'bytes' | 'ttlMs' | 'isEnd'>;

export class RunnerLeases {
  readonly #now: () => number;
  readonly #runners = new Map<string, Known>();

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** False: it is not to be written. */
  take(lease: Lease): boolean {
    const { runner, of: session, ttlMs } = lease;
    const now = this.#now();
    const known = this.#runners.get(runner) ?? { sessions: new Map(), writes: WRITES_AT_ONCE, at: now };
    this.#runners.delete(runner);
    this.#runners.set(runner, known);
    const [longest] = this.#runners.keys();
    if (this.#runners.size > RUNNERS_MAX && longest !== undefined) this.#runners.delete(longest);
    known.writes = Math.min(WRITES_AT_ONCE, known.writes + ((now - known.at) / 1_000) * WRITES_PER_SECOND);
    known.at = now;
    if (known.writes < 1) return false;
    known.writes -= 1;
    for (const [each, until] of known.sessions) if (until <= now) known.sessions.delete(each);
    if (!known.sessions.has(session) && known.sessions.size >= SESSIONS_MAX) return false;
    // `NaN` is neither.
    if (!(ttlMs >= TTL_MS.min && ttlMs <= TTL_MS.max)) return false;
    if (!lease.isEnd && !isLease(lease)) return false;
    known.sessions.set(session, now + ttlMs);
    return true;
  }
}

function isLease({ runner, of: session, bytes }: Lease): boolean {
  if (bytes.length > LEASE_BYTES_MAX) return false;
  let lease: Partial<RunnerLease> | null;
  try {
    lease = JSON.parse(Buffer.from(bytes).toString()) as Partial<RunnerLease> | null;
  } catch {
    return false;
  }
  return (
    lease !== null &&
    typeof lease === 'object' &&
    lease.runner === runner &&
    lease.session === session &&
    isCount(lease.slots) &&
    isCapacity(lease.capacity) &&
    (lease.sealTo === undefined || isText(lease.sealTo)) &&
    Array.isArray(lease.labels) &&
    lease.labels.length <= TEXTS_MAX &&
    lease.labels.every(isText) &&
    Array.isArray(lease.attempts) &&
    lease.attempts.every(isRef)
  );
}

function isRef(value: unknown): boolean {
  const { runId, stage, attempt, session, credit } = (value ?? {}) as Record<string, unknown>;
  // Names of stages are bounded by the lease's own size.
  return isText(runId) && typeof stage === 'string' && isText(session) && isCount(attempt) && isCount(credit);
}

function isCapacity(value: unknown): boolean {
  if (value === undefined) return true;
  const { cpu, memoryBytes } = (value ?? {}) as Record<string, unknown>;
  return [cpu, memoryBytes].every((each) => typeof each === 'number' && Number.isFinite(each) && each >= 0);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.length <= TEXT_LENGTH_MAX;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * How much that is long each tenant may have kept in a day. It owns, by tenant, how much of that is used; bounded in memory by
 * TENANTS_MAX tenants.
 *
 *  DAILYROOM-1 A tenant has `bytesMax` at once, and what it has used comes back within a day, steadily.
 *  DAILYROOM-2 What does not fit uses nothing, nor what is given back, and is nobody else's matter.
 */
const DAY_MS = 24 * 60 * 60_000;
/** Beyond it the tenant that used some longest ago has its whole room again. */
const TENANTS_MAX = 10_000;

interface Used {
  readonly bytes: number;
  readonly atMs: number;
}

export class DailyRoom {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #used = new Map<string, Used>();

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(bytesMax: number, now: () => number) {
    this.#bytesMax = bytesMax;
    this.#now = now;
  }

  /** False: there is no room for so much now. */
  take(tenant: string, bytes: number): boolean {
    const atMs = this.#now();
    const known = this.#used.get(tenant);
    const back = known === undefined ? 0 : ((atMs - known.atMs) / DAY_MS) * this.#bytesMax;
    const used = Math.max(0, (known?.bytes ?? 0) - back) + bytes;
    if (used > this.#bytesMax) return false;
    this.#used.delete(tenant);
    this.#used.set(tenant, { bytes: used, atMs });
    const [longest] = this.#used.keys();
    if (this.#used.size > TENANTS_MAX && longest !== undefined) this.#used.delete(longest);
    return true;
  }

  /** What was taken a moment ago, and of which nothing was kept. */
  giveBack(tenant: string, bytes: number): void {
    const known = this.#used.get(tenant);
    if (known !== undefined) this.#used.set(tenant, { ...known, bytes: Math.max(0, known.bytes - bytes) });
  }
}

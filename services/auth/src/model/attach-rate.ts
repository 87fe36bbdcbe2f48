/**
 * How often a tenant may bring machines that the broker does not know: for each it reads its configuration again, which everybody
 * notices. It owns, by tenant, when the last ones came; bounded in memory by the tenants that have tokens.
 */
const WINDOW_MS = 60 * 60_000;
/** As many machines as a tenant may have, and some that take the place of others. */
const MACHINES_MAX = 30;
/** Beyond it the tenant that brought one longest ago is forgotten: it has tokens, which somebody had to make. */
const TENANTS_MAX = 10_000;

export class AttachRate {
  readonly #now: () => number;
  readonly #cameAt = new Map<string, readonly number[]>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes one more; false: it is one too many for this hour. */
  take(tenant: string): boolean {
    const now = this.#now();
    const recent = (this.#cameAt.get(tenant) ?? []).filter((at) => at > now - WINDOW_MS && at <= now);
    if (recent.length >= MACHINES_MAX) return false;
    this.#cameAt.delete(tenant);
    this.#cameAt.set(tenant, [...recent, now]);
    const [longest] = this.#cameAt.keys();
    if (this.#cameAt.size > TENANTS_MAX && longest !== undefined) this.#cameAt.delete(longest);
    return true;
  }
}

/**
 * Which commit was the last about a run of each tenant (P22), and how often some of its runs have left all lists since: whoever knows an answer about a tenant's runs learns in one word
 * whether it still is what would be answered. Never too early a commit; too late a one only costs a reading.
 */
import type { Sequence } from '@penstock/run';

/** Of those heard of last: some hundred KiB. */
const TENANTS_MAX = 10_000;
/** Fewer removals of a tenant than this has in one come between two commits. */
const REMOVED_STEP = 2 ** -12;

export class TenantChanges {
  readonly #last = new Map<string, Sequence>();
  /** Of all tenants that are not in there. */
  #others: Sequence = 0;

  /** Nothing is known of what was before. */
  start(sequence: Sequence): void {
    this.#last.clear();
    this.#others = sequence;
  }

  committed(tenant: string, sequence: Sequence): void {
    this.#last.delete(tenant);
    this.#last.set(tenant, sequence);
    if (this.#last.size <= TENANTS_MAX) return;
    const [oldest] = this.#last;
    if (oldest === undefined) return;
    this.#last.delete(oldest[0]);
    this.#others = oldest[1];
  }

  /** A deleted run of the tenant is in no list from now on, the checkpoint standing at `sequence`: a part of a commit behind the last. */
  removed(tenant: string, sequence: Sequence): void {
    this.committed(tenant, Math.max(this.lastOf([tenant]), sequence) + REMOVED_STEP);
  }

  lastOf(tenants: readonly string[]): Sequence {
    return Math.max(0, ...tenants.map((tenant) => this.#last.get(tenant) ?? this.#others));
  }
}

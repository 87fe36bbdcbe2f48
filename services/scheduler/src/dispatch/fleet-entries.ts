/**
 * What runners of the fleet may be granted (P37): their offers are cut to their entry, and without one they count for nothing. The
 * broker's permissions bind the name under which a runner offers. It owns the entries, as its watch tells them.
 */
import { allowedLabels, type FleetEntry, isFleetRunner, type LeaseEvent } from '@penstock/bus';

/** Whose stages a runner gets that has no entry. No tenant has this name. */
export const NOBODY = '';

export class FleetEntries {
  readonly #entries = new Map<string, FleetEntry>();

  /** False: from here on the runner has no entry. */
  follow(event: LeaseEvent<FleetEntry>): boolean {
    const isThere = event.kind === 'put' && event.value.revoked !== true;
    if (isThere) this.#entries.set(event.key, event.value);
    else this.#entries.delete(event.key);
    return isThere;
  }

  /** Of the labels that the runner offers those that count; null: it is granted nothing. */
  allowed(runner: string, labels: readonly string[]): readonly string[] | null {
    if (!isFleetRunner(runner)) return labels;
    const entry = this.#entries.get(runner);
    return entry === undefined ? null : allowedLabels(entry, labels);
  }

  /** Whose stages alone it may be granted; undefined: everybody's. */
  tenantOf(runner: string): string | undefined {
    if (!isFleetRunner(runner)) return undefined;
    const entry = this.#entries.get(runner);
    return entry === undefined ? NOBODY : entry.tenant;
  }
}

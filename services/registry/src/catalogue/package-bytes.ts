/**
 * What the packages of each tenant take, by the records that this registry knows: what another one has published a moment ago may be
 * missing. Versions stay for ever, for who names one has to find it, so nothing else bounds them.
 */
import { Counts } from '@penstock/async';
import { isNewer, type ExtensionRecord, type RecordAge } from './records.ts';

/** Of a version beside its package: its texts, its place in the documents. */
export const VERSION_BYTES = 64 * 1024;

export class PackageBytes {
  readonly #records = new Map<string, RecordAge & { readonly tenant: string; readonly bytes: number }>();
  readonly #ofTenant = new Counts();

  of(tenant: string): number {
    return this.#ofTenant.of(tenant);
  }

  /** News in the wrong order do no harm. */
  put(record: ExtensionRecord): void {
    const { key, tenant, createdAt, generation, versions } = record;
    const known = this.#records.get(key);
    if (known !== undefined && !isNewer(record, known)) return;
    this.remove(key);
    const bytes = versions.reduce((sum, { sizeBytes }) => sum + sizeBytes + VERSION_BYTES, 0);
    this.#records.set(key, { tenant, createdAt, generation, bytes });
    this.#ofTenant.add(tenant, bytes);
  }

  /** It is there no more. */
  remove(key: string): void {
    const known = this.#records.get(key);
    if (known === undefined) return;
    this.#records.delete(key);
    this.#ofTenant.add(known.tenant, -known.bytes);
  }
}

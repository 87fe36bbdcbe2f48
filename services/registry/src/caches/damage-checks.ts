/**
 * Archives of caches of which somebody says that they are damaged, looked at: each is read whole, which of gigabytes takes minutes. It owns
 * which are being looked at, and which were found whole.
 *
 *  DAMAGE-1 An archive is read by one at a time, however many say so, and one that was found whole is not read again for WHOLE_MS unless it
 *     was stored anew.
 *  DAMAGE-2 READ_AT_ONCE are read at once, half of them of one tenant; of a tenant WAITING_OF_TENANT_MAX wait. What is not looked at is said
 *     again by the next who finds it damaged.
 *  DAMAGE-3 Who says so waits for ANSWER_MS at most, and goes without the cache in any case.
 */
import { Counts, Lanes, within, type Time } from '@penstock/async';
import type { ObjectHead } from '@penstock/object-store';
import { cacheScopeId, type CacheEntry } from '@penstock/store';

export interface DamageChecksOptions {
  head(entry: CacheEntry): Promise<ObjectHead | null>;
  isWhole(entry: CacheEntry): Promise<boolean>;
  /** It is damaged, or not there. */
  remove(entry: CacheEntry): Promise<unknown>;
  readonly time: Pick<Time, 'bootNow'>;
}

interface Asked {
  readonly entry: CacheEntry;
  readonly done: PromiseWithResolvers<void>;
}

const READ_AT_ONCE = 2;
const WAITING_OF_TENANT_MAX = 20;
const WAITING_MAX = 500;
const ANSWER_MS = 5_000;
const WHOLE_MS = 10 * 60_000;
const WHOLE_MAX = 1_000;

export class DamageChecks {
  readonly #options: DamageChecksOptions;
  readonly #lanes: Lanes;
  readonly #asked = new Map<string, Asked>();
  readonly #ofTenant = new Counts();
  /** By what was read, and as it was stored: until when it counts as whole. */
  readonly #whole = new Map<string, number>();

  constructor(options: DamageChecksOptions) {
    this.#options = options;
    this.#lanes = new Lanes({
      concurrency: READ_AT_ONCE,
      work: (name) => this.#look(name),
      // None fails: see `#look`.
      failed: () => {},
    });
  }

  async look(entry: CacheEntry): Promise<void> {
    const { tenant } = entry.scope;
    const name = nameOf(entry);
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      if (this.#asked.size >= WAITING_MAX || this.#ofTenant.of(tenant) >= WAITING_OF_TENANT_MAX) return;
      asked = { entry, done: Promise.withResolvers() };
      this.#asked.set(name, asked);
      this.#ofTenant.add(tenant, 1);
      this.#lanes.add(name, { host: name, owner: tenant });
    }
    await within(ANSWER_MS, asked.done.promise, () => {});
  }

  /** One that cannot be looked at now stays: the next who finds it damaged says so again. */
  async #look(name: string): Promise<boolean> {
    const asked = this.#asked.get(name);
    if (asked === undefined) return false;
    try {
      await this.#removeDamaged(asked.entry);
    } catch {
      // The storage or the store is away.
    } finally {
      this.#asked.delete(name);
      this.#ofTenant.add(asked.entry.scope.tenant, -1);
      asked.done.resolve();
    }
    return true;
  }

  async #removeDamaged(entry: CacheEntry): Promise<void> {
    const { head, isWhole, remove, time } = this.#options;
    const found = await head(entry);
    const stored = `${nameOf(entry)} ${found?.size} ${found?.storedAt}`;
    const isKnown = (this.#whole.get(stored) ?? -Infinity) > time.bootNow();
    if (found !== null && found.size === entry.bytes && (isKnown || (await isWhole(entry)))) {
      if (!isKnown) this.#whole.set(stored, time.bootNow() + WHOLE_MS);
      for (const oldest of this.#whole.keys()) {
        if (this.#whole.size <= WHOLE_MAX) break;
        this.#whole.delete(oldest);
      }
      return;
    }
    await remove(entry);
  }
}

function nameOf({ scope, sha256 }: CacheEntry): string {
  return `${cacheScopeId(scope)}/${sha256}`;
}

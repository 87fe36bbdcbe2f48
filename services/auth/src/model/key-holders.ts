/**
 * Which processes of auth run with which master keys: each notes its own in the store, again and again, and takes the note back when it ends.
 *
 *  HOLDER-1 A note counts for two hours after it was last written: a machine's clock may be an hour off. One that was killed
 *     counts so long; nothing is lost by an old key that stays for longer.
 */
import { randomUUID } from 'node:crypto';
import type { Collection, DocumentStore } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { keyHoldersSpec } from './collections.ts';
import type { MasterKeys } from './master-keys.ts';

export interface KeyHolder {
  /** Of the key that it seals under; '' without one. */
  readonly first: string;
  readonly keys: readonly string[];
}

export interface KeyHoldersOptions {
  readonly store: DocumentStore;
  readonly keys: MasterKeys;
  readonly now: () => number;
  readonly log: Pick<Log, 'warn'>;
}

const EVERY_MS = 60_000;
const COUNTS_MS = 2 * 3_600_000;
/** No installation has as many. */
const HOLDERS_MAX = 1_000;

export class KeyHolders {
  readonly #rows: Collection<typeof keyHoldersSpec>;
  readonly #options: KeyHoldersOptions;
  readonly #id = randomUUID();
  readonly #timer: NodeJS.Timeout;
  #last: Promise<void>;

  /** Notes at once, and from then on. */
  constructor(options: KeyHoldersOptions) {
    this.#options = options;
    this.#rows = options.store.collection(keyHoldersSpec);
    this.#last = this.#note();
    this.#timer = setInterval(() => {
      this.#last = this.#note();
    }, EVERY_MS);
    this.#timer.unref();
  }

  /** This process among them. Throws what the store throws. */
  async living(): Promise<readonly KeyHolder[]> {
    await this.#write();
    const since = this.#options.now() - COUNTS_MS;
    const rows = await this.#rows.list({ where: { seenAt: { gte: since } }, limit: HOLDERS_MAX, orderBy: BY_TIME });
    return rows.map(({ first, keys }) => ({ first, keys: keys === '' ? [] : keys.split(',') }));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#last;
    try {
      await this.#rows.delete(this.#id);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'that this process holds master keys no more could not be noted');
    }
  }

  async #note(): Promise<void> {
    try {
      await this.#write();
      const over = { seenAt: { lt: this.#options.now() - 2 * COUNTS_MS } };
      await this.#rows.deleteWhere({ where: over, orderBy: BY_TIME, limit: HOLDERS_MAX });
    } catch (error) {
      this.#options.log.warn({ err: error }, 'which master keys this process holds could not be noted; later');
    }
  }

  async #write(): Promise<void> {
    const { currentId = '', ids } = this.#options.keys;
    const row = { id: this.#id, first: currentId, keys: ids.join(','), seenAt: this.#options.now(), step: 0 };
    await this.#rows.replaceNewer([row]);
  }
}

const BY_TIME = { field: 'seenAt', direction: 'desc' } as const;

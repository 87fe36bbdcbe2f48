/**
 * The keys that id tokens are signed with. One signs for 30 days; it is made a day before that, so that whoever remembers the
 * published ones has it by then, and published until the last token that it has signed is over. All processes of auth choose the
 * same one: a key's id names its period, and the first to insert it has made it.
 *
 *  SIGNING-KEY-1 A private key stands in the store sealed under a master key, and nowhere else; what is published has none of it.
 */
import { within } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { StoreUnavailable, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';
import { exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose';
import { signingKeysSpec } from './collections.ts';
import type { MasterKeys } from './master-keys.ts';

export const SIGNING_ALGORITHM = 'RS256';
const DAY_MS = 24 * 60 * 60_000;
const PERIOD_MS = 30 * DAY_MS;
/** Longer than any verifier remembers the published keys, and than clocks differ. */
const AHEAD_MS = DAY_MS;
/** An hour's token, and clocks that differ by another. */
const OVERLAP_MS = 2 * 60 * 60_000;
/** Less than those who verify wait for the keys. */
const STORE_MS = 2_000;
/** Between two looks at the store. */
const REMEMBERED_MS = 60_000;
/** Of the present period and its neighbours, made anew after a lost master key too. */
const KEYS_MAX = 100;

export interface SigningKey {
  readonly id: string;
  readonly key: CryptoKey | Uint8Array;
}

interface OpenedKey extends SigningKey {
  /** As it stands in the store. */
  readonly publicKey: string;
}

type KeyRow = Omit<DocumentOf<typeof signingKeysSpec>, 'sealed'>;

export class SigningKeys {
  readonly #keys: Collection<typeof signingKeysSpec>;
  readonly #masterKeys: MasterKeys;
  readonly #now: () => number;
  readonly #opened = new Map<string, OpenedKey>();
  #published: { readonly readAt: number; readonly keys: readonly JWK[] } | undefined;
  /** One look at the store for all who ask meanwhile: anybody may. */
  #reading: Promise<readonly JWK[]> | undefined;

  constructor(store: DocumentStore, masterKeys: MasterKeys, now: () => number) {
    this.#keys = store.collection(signingKeysSpec);
    this.#masterKeys = masterKeys;
    this.#now = now;
  }

  /** That signs now. Throws `Unavailable` without a master key. */
  async current(): Promise<SigningKey> {
    if (!this.canSign)
      throw new Unavailable('This server gives no id tokens: its operator has not set SERVICE_MASTER_KEY.');
    // Whoever verifies may ask another process: what the store has lost is found out here too. A store that is away holds up no token.
    const looked = this.published().catch(() => {});
    await within(STORE_MS, looked, () => {});
    return await this.#keyOf(periodAt(this.#now()));
  }

  get canSign(): boolean {
    return this.#masterKeys.currentId !== undefined;
  }

  /** The public halves of all keys whose tokens may be taken, soon or still. */
  async published(): Promise<readonly JWK[]> {
    const known = this.#published;
    const now = this.#now();
    if (known !== undefined && Math.abs(now - known.readAt) < REMEMBERED_MS) return known.keys;
    const reading = (this.#reading ??= this.#readPublished(now).finally(() => {
      this.#reading = undefined;
    }));
    if (known === undefined || Math.abs(now - known.readAt) >= AHEAD_MS) return await reading;
    try {
      // Whatever signs by now was published with those that are known: a store that is away makes no token invalid.
      return await within(STORE_MS, reading, () => known.keys);
    } catch (error) {
      if (error instanceof StoreUnavailable) return known.keys;
      throw error;
    }
  }

  async #readPublished(now: number): Promise<readonly JWK[]> {
    const standing = new Map((await this.#rows()).map(({ id, publicKey }) => [id, publicKey]));
    // Not in the store any more, which was restored or cleared by a peer whose clock was wrong: nobody could verify what it signs.
    for (const [mine, { id, publicKey }] of this.#opened) if (standing.get(id) !== publicKey) this.#opened.delete(mine);
    if (this.canSign)
      for (const period of new Set([periodAt(now), periodAt(now + AHEAD_MS)])) await this.#keyOf(period);
    const keys: JWK[] = [];
    for (const row of await this.#rows()) {
      if ((row.period + 1) * PERIOD_MS + OVERLAP_MS > now)
        keys.push({ ...(JSON.parse(row.publicKey) as JWK), kid: row.id, use: 'sig', alg: SIGNING_ALGORITHM });
      else if ((row.period + 2) * PERIOD_MS < now) await this.#forget(row.id);
    }
    this.#published = { readAt: now, keys };
    return keys;
  }

  async #rows(): Promise<KeyRow[]> {
    return await this.#keys.list({ where: {}, limit: KEYS_MAX, parts: [] });
  }

  async #keyOf(period: number): Promise<SigningKey> {
    const mine = `${period}-${this.#masterKeys.currentId ?? ''}`;
    const known = this.#opened.get(mine);
    if (known !== undefined) return known;
    const opened = (await this.#openOf(period)) ?? (await this.#make(mine, period)) ?? (await this.#openOf(period));
    if (opened === undefined) throw new Unavailable('The key that id tokens are signed with cannot be had; try again.');
    this.#opened.set(mine, opened);
    return opened;
  }

  /** Undefined: there is none, or none whose master key this server still has. */
  async #openOf(period: number): Promise<OpenedKey | undefined> {
    const rows = (await this.#rows()).filter((row) => row.period === period);
    for (const { id } of rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const row = await this.#keys.get(id);
      const bytes = row === null ? null : await this.#masterKeys.open(id, String(row.sealed));
      if (row === null || bytes === null) continue;
      const key = await importJWK(JSON.parse(Buffer.from(bytes).toString()) as JWK, SIGNING_ALGORITHM);
      return { id, key, publicKey: row.publicKey };
    }
    return undefined;
  }

  /** Undefined: another process has made it meanwhile. */
  async #make(id: string, period: number): Promise<OpenedKey | undefined> {
    const pair = await generateKeyPair(SIGNING_ALGORITHM, { extractable: true });
    const { sealed, keyId } = await this.#masterKeys.seal(
      id,
      Buffer.from(JSON.stringify(await exportJWK(pair.privateKey))),
    );
    const { kty, n, e } = await exportJWK(pair.publicKey);
    const publicKey = JSON.stringify({ kty, n, e });
    const row = { id, period, publicKey, keyId, updatedAt: this.#now(), revision: 0 };
    if ((await this.#keys.insert({ ...row, sealed })) === 'duplicate') return undefined;
    this.#published = undefined;
    return { id, key: pair.privateKey, publicKey };
  }

  async #forget(id: string): Promise<void> {
    await this.#keys.delete(id);
    this.#opened.delete(id);
  }
}

function periodAt(time: number): number {
  return Math.floor(time / PERIOD_MS);
}

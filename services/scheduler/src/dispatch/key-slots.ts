/**
 * How many slots each key has, by runner, and how many it may have while another waits (fair slots). Turns alone do not share
 * slots fairly: a key with stages of an hour, which takes turns with one whose stages take a second, soon has them all.
 *
 *  KEYSLOTS-1 What is counted for a key is its live attempts, whoever granted them; what is counted for nobody is forgotten.
 *  KEYSLOTS-2 What a partition has counted counts no more from the moment at which it is another's; it leaves memory some at a time.
 */

/** Who counts: a key's attempts are all of one partition. */
export interface SlotsHolder {
  /** It counts no more, and neither does what it has counted. */
  isGone: boolean;
}

interface KeyUse {
  readonly holder: SlotsHolder;
  /** Live attempts, by runner. */
  readonly runners: Map<string, number>;
}

/** Keys that are looked at in one call of `forgetGone`. */
const FORGOTTEN_AT_ONCE = 2_000;

/** The runners that can take some stage, with the slots of all of them. */
export interface Pool {
  readonly slots: number;
  readonly runners: ReadonlySet<string>;
  /** Sessions of drained runners that could take it otherwise. */
  readonly drained: number;
}

export class KeySlots {
  readonly #inUse = new Map<string, KeyUse>();
  readonly #max: number | undefined;
  readonly #freed: (key?: string) => void;
  /** Where the look for what was counted by those that are gone stands. */
  #forgetting: Iterator<[string, KeyUse]> | undefined;

  /** `max`: `SERVICE_KEY_SLOTS`; undefined: half of the pool. `freed`: the key has slots less; undefined: any may have. */
  constructor(max: number | undefined, freed: (key?: string) => void) {
    this.#max = max;
    this.#freed = freed;
  }

  add(key: string, runner: string, attempts: number, holder: SlotsHolder = ANYBODY): void {
    let use = this.#inUse.get(key);
    if (use?.holder !== holder) this.#inUse.set(key, (use = { holder, runners: new Map() }));
    const { runners } = use;
    const count = (runners.get(runner) ?? 0) + attempts;
    if (count > 0) runners.set(runner, count);
    else runners.delete(runner);
    if (runners.size === 0) this.#inUse.delete(key);
    if (attempts < 0) this.#freed(key);
  }

  /** What it has counted is counted no more, at once: all of it is another's now. */
  gone(holder: SlotsHolder): void {
    holder.isGone = true;
    this.#forgetting = this.#inUse.entries();
    this.#freed();
  }

  /** About every second: keeps KEYSLOTS-2. */
  forgetGone(): void {
    for (let left = FORGOTTEN_AT_ONCE; left > 0 && this.#forgetting !== undefined; left -= 1) {
      const { value, done } = this.#forgetting.next();
      if (done === true) this.#forgetting = undefined;
      else if (value[1].holder.isGone) this.#inUse.delete(value[0]);
    }
  }

  has(key: string): boolean {
    return this.#useOf(key) !== undefined;
  }

  #useOf(key: string): ReadonlyMap<string, number> | undefined {
    const use = this.#inUse.get(key);
    return use?.holder.isGone === false ? use.runners : undefined;
  }

  /** Whether the key has all that it may have of the pool while another waits. `own`: what its tier says, if anything. */
  isFull(key: string, own: number | undefined, pool: Pool): boolean {
    const ofKey = this.#useOf(key);
    if (ofKey === undefined) return false;
    const cap = own ?? this.#max ?? Math.max(1, Math.floor(pool.slots / 2));
    let count = 0;
    for (const [runner, attempts] of ofKey) {
      if (pool.runners.has(runner)) count += attempts;
      if (count >= cap) return true;
    }
    return false;
  }

  /** Of all keys, for those who check that nothing is left. */
  get total(): number {
    let total = 0;
    for (const key of this.#inUse.keys()) for (const attempts of this.#useOf(key)?.values() ?? []) total += attempts;
    return total;
  }

  /** Keys in memory, those that are still to be forgotten included. */
  get size(): number {
    return this.#inUse.size;
  }
}

/** Where it is never asked who. */
const ANYBODY: SlotsHolder = { isGone: false };

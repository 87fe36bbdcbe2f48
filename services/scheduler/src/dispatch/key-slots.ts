/**
 * How many slots each key has, by runner, and how many it may have while another waits (fair slots). Turns alone do not share
 * slots fairly: a key with stages of an hour, which takes turns with one whose stages take a second, soon has them all.
 *
 *  KEYSLOTS-1 What is counted for a key is its live attempts, whoever granted them; what is counted for nobody is forgotten.
 */

/** The runners that can take some stage, with the slots of all of them. */
export interface Pool {
  readonly slots: number;
  readonly runners: ReadonlySet<string>;
  /** Sessions of drained runners that could take it otherwise. */
  readonly drained: number;
}

export class KeySlots {
  /** Key to runner to live attempts. */
  readonly #inUse = new Map<string, Map<string, number>>();
  readonly #max: number | undefined;
  readonly #freed: (key: string) => void;

  /** `max`: `SERVICE_KEY_SLOTS`; undefined: half of the pool. `freed`: the key has a slot less. */
  constructor(max: number | undefined, freed: (key: string) => void) {
    this.#max = max;
    this.#freed = freed;
  }

  add(key: string, runner: string, attempts: number): void {
    let ofKey = this.#inUse.get(key);
    if (ofKey === undefined) this.#inUse.set(key, (ofKey = new Map()));
    const count = (ofKey.get(runner) ?? 0) + attempts;
    if (count > 0) ofKey.set(runner, count);
    else ofKey.delete(runner);
    if (ofKey.size === 0) this.#inUse.delete(key);
    if (attempts < 0) this.#freed(key);
  }

  /** What was counted for these keys is counted no more: all that they have is another's now. */
  forget(keys: Iterable<string>): void {
    for (const key of keys) if (this.#inUse.delete(key)) this.#freed(key);
  }

  has(key: string): boolean {
    return this.#inUse.has(key);
  }

  /** Whether the key has all that it may have of the pool while another waits. `own`: what its tier says, if anything. */
  isFull(key: string, own: number | undefined, pool: Pool): boolean {
    const ofKey = this.#inUse.get(key);
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
    for (const ofKey of this.#inUse.values()) for (const attempts of ofKey.values()) total += attempts;
    return total;
  }
}

/**
 * Whose turn it is among keys (DISPATCH-1): stride scheduling. Each slot moves its key's pass on by one over its weight; the
 * least pass is next, and who comes anew starts from where the others are. Owns the passes.
 */
const PASSES_ROOM_MIN = 4 * 1024;

export class KeyTurns {
  readonly #weightOf: (key: string) => number;
  readonly #passes = new Map<string, number>();
  /** How many passes there may be before those that say nothing are forgotten. */
  #room = PASSES_ROOM_MIN;
  #virtualTime = 0;

  constructor(weightOf: (key: string) => number) {
    this.#weightOf = weightOf;
  }

  /** The pass of the key that was given a slot last. */
  get virtualTime(): number {
    return this.#virtualTime;
  }

  readonly passOf = (key: string): number => this.#passes.get(key) ?? this.#virtualTime;

  /** The pass of a key that begins to wait: what it did not use while it did not wait is nothing saved. */
  joins(key: string): number {
    const pass = Math.max(this.passOf(key), this.#virtualTime);
    this.#passes.set(key, pass);
    return pass;
  }

  /** It has been given a slot. */
  charge(key: string): void {
    const pass = Math.max(this.passOf(key), this.#virtualTime);
    this.#virtualTime = pass;
    this.#passes.set(key, pass + 1 / this.#weightOf(key));
    if (this.#passes.size <= this.#room) return;
    this.#forgetIdle();
    // However many keys are ahead of the others, each is looked at about once for each that comes.
    this.#room = Math.max(PASSES_ROOM_MIN, 2 * this.#passes.size);
  }

  /** A key whose pass is not ahead of the others starts from the virtual time again: nothing is remembered of it. */
  #forgetIdle(): void {
    for (const [key, pass] of this.#passes) if (pass <= this.#virtualTime) this.#passes.delete(key);
  }
}

/** All chance of a simulated world: a small fast generator (sfc32), so that one number makes the whole world again. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(seed, 0x9e3779b1) | 0;
    this.#c = 0x1f123bb5;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** From 0 to below 1. */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t;
    return (t >>> 0) / 0x1_0000_0000;
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  /** A whole number from 0 to below `bound`. */
  int(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** With this mean, and now and then several times it. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('there is nothing to pick from');
    return items[this.int(items.length)] as T;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.int(256));
  }
}

/** How many each name has, of names that may be anything: those that have none take no room. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** `more` may be below 0; nobody has fewer than none. */
  add(name: string, more: number): void {
    const sum = this.of(name) + more;
    if (sum > 0) this.#counts.set(name, sum);
    else this.#counts.delete(name);
  }

  clear(): void {
    this.#counts.clear();
  }
}

/** Counts what has happened in worlds: a fault that never happens, or a rare branch that is never taken, proves nothing. */
export class Marks {
  readonly counts = new Map<string, number>();

  hit(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  add(other: Iterable<readonly [string, number]>): void {
    for (const [name, count] of other) this.counts.set(name, (this.counts.get(name) ?? 0) + count);
  }
}

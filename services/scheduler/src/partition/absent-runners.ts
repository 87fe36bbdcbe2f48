/** Runners without a session that hold workspaces (P19): one that stays away for long has lost them. */
export class AbsentRunners {
  /** Since when, by the boot clock. */
  readonly #since = new Map<string, number>();
  readonly #graceMs: number;

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  add(runner: string, now: number): void {
    if (!this.#since.has(runner)) this.#since.set(runner, now);
  }

  delete(runner: string): void {
    this.#since.delete(runner);
  }

  /** Takes out those that have been away for longer than the grace. */
  takeLost(now: number): string[] {
    const lost: string[] = [];
    for (const [runner, since] of this.#since) {
      if (now - since < this.#graceMs) continue;
      this.#since.delete(runner);
      lost.push(runner);
    }
    return lost;
  }
}

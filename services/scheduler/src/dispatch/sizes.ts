/** What the runners have, as far as it tells sizes apart: two sizes between which no runner makes a difference are one. */
import type { Least } from '@penstock/pipeline';
import type { Session } from './sessions.ts';

type Capacity = Session['capacity'];

export class Sizes {
  /** Each once, the smallest first. */
  #cpu: readonly number[] = [];
  #memoryBytes: readonly number[] = [];

  knows(capacity: Capacity): boolean {
    return (
      capacity === undefined ||
      (this.#cpu[below(this.#cpu, capacity.cpu)] === capacity.cpu &&
        this.#memoryBytes[below(this.#memoryBytes, capacity.memoryBytes)] === capacity.memoryBytes)
    );
  }

  learn(capacities: Iterable<Capacity>): void {
    const known = [...capacities].filter((capacity) => capacity !== undefined);
    this.#cpu = sorted(known.map(({ cpu }) => cpu));
    this.#memoryBytes = sorted(known.map(({ memoryBytes }) => memoryBytes));
  }

  /** Equal for those that the same runners have room for. */
  rankOf(least: Least | undefined): string {
    return `${below(this.#cpu, least?.cpu ?? 0)} ${below(this.#memoryBytes, least?.memoryBytes ?? 0)}`;
  }
}

function sorted(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/** How many are less. */
function below(values: readonly number[], value: number): number {
  let [from, to] = [0, values.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((values[middle] ?? Infinity) < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

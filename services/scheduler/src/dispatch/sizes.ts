/** What the runners have, as far as it tells sizes apart: two sizes between which no runner makes a difference are one. */
import type { Least } from '@penstock/pipeline';
import type { Session } from './sessions.ts';

type Capacity = Session['capacity'];

/** Up to these, and beyond the next less that some runner has. */
export interface Bounds {
  readonly cpu: number;
  readonly memoryBytes: number;
}

export class Sizes {
  /** Each once, the smallest first. */
  #cpu: number[] = [];
  #memoryBytes: number[] = [];

  /** Of the one of which more are known. */
  get count(): number {
    return Math.max(this.#cpu.length, this.#memoryBytes.length);
  }

  knows(capacity: Capacity): boolean {
    return capacity === undefined || (has(this.#cpu, capacity.cpu) && has(this.#memoryBytes, capacity.memoryBytes));
  }

  /** All others are forgotten. */
  learn(capacities: Iterable<Capacity>): void {
    const known = [...capacities].filter((capacity) => capacity !== undefined);
    this.#cpu = sorted(known.map(({ cpu }) => cpu));
    this.#memoryBytes = sorted(known.map(({ memoryBytes }) => memoryBytes));
  }

  add({ cpu, memoryBytes }: Bounds): void {
    addTo(this.#cpu, cpu);
    addTo(this.#memoryBytes, memoryBytes);
  }

  /** Equal for those that the same runners have room for. */
  boundsOf(least: Least | undefined): Bounds {
    return { cpu: bound(this.#cpu, least?.cpu), memoryBytes: bound(this.#memoryBytes, least?.memoryBytes) };
  }
}

function sorted(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function has(values: readonly number[], value: number): boolean {
  return values[below(values, value)] === value;
}

function addTo(values: number[], value: number): void {
  if (!has(values, value)) values.splice(below(values, value), 0, value);
}

function bound(values: readonly number[], value = 0): number {
  return values[below(values, value)] ?? Infinity;
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

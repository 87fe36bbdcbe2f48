/**
 * Where the stages of a plan stand, by their names. A run may grow a thousand times, and each of its plans stays as it is: those that
 * have grown one from the other share one table, each as far as its own stages go.
 */
export type NamedPlaces = Pick<ReadonlyMap<string, number>, 'get' | 'has'>;

class SharedPlaces implements NamedPlaces {
  /** Has what has grown from this, too. */
  readonly table: Map<string, number>;
  readonly size: number;

  constructor(table: Map<string, number>) {
    this.table = table;
    this.size = table.size;
  }

  get(name: string): number | undefined {
    const place = this.table.get(name);
    return place !== undefined && place < this.size ? place : undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }
}

/** With these names behind all others, none of which is there already. */
export function placesAfter(places: NamedPlaces, all: () => readonly string[], added: readonly string[]): NamedPlaces {
  // Another may have grown from the same plan: its names are not these.
  const isLast = places instanceof SharedPlaces && places.table.size === places.size;
  const table = isLast ? places.table : new Map(all().map((name, index) => [name, index]));
  for (const name of added) table.set(name, table.size);
  return new SharedPlaces(table);
}

/**
 * The classes of waiting stages, found by those who can take them: bound ones by their runner, others by one of their labels, the
 * one that fewest others stand under, so that a session looks at few of ten thousand label sets.
 */

export interface Classified {
  readonly labels: readonly string[];
  /** Whose stages only this runner may have. */
  readonly runner: string | undefined;
}

export class ReadyClasses<Class extends Classified> {
  readonly #byRunner = new Map<string, Set<Class>>();
  readonly #byLabel = new Map<string, Set<Class>>();
  readonly #unlabelled = new Set<Class>();
  readonly #placeOf = new Map<Class, Set<Class>>();

  add(ready: Class): void {
    const place = this.#placeFor(ready);
    place.add(ready);
    this.#placeOf.set(ready, place);
  }

  delete(ready: Class): void {
    const place = this.#placeOf.get(ready);
    if (place === undefined) return;
    this.#placeOf.delete(ready);
    place.delete(ready);
    if (place.size > 0) return;
    if (ready.runner !== undefined) this.#byRunner.delete(ready.runner);
    for (const label of ready.labels) if (this.#byLabel.get(label) === place) this.#byLabel.delete(label);
  }

  /** All that this runner can take with these labels, and some that it cannot for want of a label. */
  *near(runner: string, labels: ReadonlySet<string>): Iterable<Class> {
    yield* this.#byRunner.get(runner) ?? [];
    yield* this.#unlabelled;
    for (const label of labels) yield* this.#byLabel.get(label) ?? [];
  }

  #placeFor({ runner, labels }: Class): Set<Class> {
    if (runner !== undefined) return placeIn(this.#byRunner, runner);
    let best: string | undefined;
    for (const label of labels) if (best === undefined || this.#under(label) < this.#under(best)) best = label;
    return best === undefined ? this.#unlabelled : placeIn(this.#byLabel, best);
  }

  #under(label: string): number {
    return this.#byLabel.get(label)?.size ?? 0;
  }
}

function placeIn<Class>(places: Map<string, Set<Class>>, name: string): Set<Class> {
  let place = places.get(name);
  if (place === undefined) places.set(name, (place = new Set()));
  return place;
}

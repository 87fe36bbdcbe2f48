/**
 * Which classes of waiting stages go together, and which groups a session has to look at. It owns the groups; what is in one is put together
 * by what the runners have: where one has what none had, what it has room for leaves the groups that it has not for all of.
 */
import { invariant } from '../run/invariant.ts';
import type { ReadyClass } from './ready-class.ts';
import { ReadyClasses } from './ready-classes.ts';
import { ReadyGroup } from './ready-group.ts';
import type { Session } from './sessions.ts';
import { type Bounds, Sizes } from './sizes.ts';

interface Known {
  readonly group: ReadyGroup;
  readonly classes: Set<ReadyClass>;
  readonly bounds: Bounds;
}

/** Of more new sizes at once all groups are made anew, which takes as long as some looks at all classes. */
const SPLITS_MAX = 16;
/** Beyond twice as many sizes as there are runners, and so many, those that none has any more are forgotten. */
const SIZES_MIN = 64;

export class ReadyGroups {
  readonly #sizes = new Sizes();
  #near = new ReadyClasses<ReadyGroup>();
  readonly #byId = new Map<string, Known>();
  readonly #ofClass = new Map<ReadyClass, ReadyGroup>();
  /** What sessions have that none had before. */
  #unknown: Bounds[] = [];

  /** Made where there is none. */
  of(ready: ReadyClass): ReadyGroup {
    return this.#ofClass.get(ready) ?? this.#join(ready);
  }

  /** All that the session can take, and some that it cannot. */
  near({ runner, labels }: Session): Iterable<ReadyGroup> {
    return this.#near.near(runner, labels);
  }

  /** A class that has no lanes any more. */
  delete(ready: ReadyClass): ReadyGroup | undefined {
    const group = this.#ofClass.get(ready);
    this.#ofClass.delete(ready);
    const known = this.#byId.get(group?.id ?? '');
    known?.classes.delete(ready);
    if (known === undefined || known.classes.size > 0) return undefined;
    this.#forget(known);
    return known.group;
  }

  /** Of a session that is everybody's. */
  seen({ capacity }: Session): void {
    // Of more than that none is asked for again, however many come before the next `renew`.
    if (this.#unknown.length > SPLITS_MAX) return;
    if (capacity !== undefined && !this.#sizes.knows(capacity)) this.#unknown.push(capacity);
  }

  /** True: some groups are others. */
  renew(sessions: Iterable<Session>): boolean {
    if (this.#unknown.length === 0) return false;
    const unknown = this.#unknown;
    this.#unknown = [];
    const shared = [...sessions].filter(({ tenant }) => tenant === undefined);
    if (unknown.length > SPLITS_MAX || this.#sizes.count > SIZES_MIN + 2 * shared.length) this.#remake(shared);
    else for (const capacity of unknown) if (!this.#sizes.knows(capacity)) this.#split(capacity);
    return true;
  }

  #remake(shared: readonly Session[]): void {
    this.#sizes.learn(shared.map(({ capacity }) => capacity));
    const classes = [...this.#ofClass.keys()];
    this.#byId.clear();
    this.#ofClass.clear();
    this.#near = new ReadyClasses();
    for (const ready of classes) this.#move(ready);
  }

  #split(capacity: Bounds): void {
    this.#sizes.add(capacity);
    // Those that come to it are within its bounds, and looked at no second time.
    for (const known of [...this.#byId.values()]) {
      const { bounds, classes, group } = known;
      const [hasCpu, hasMemory] = [capacity.cpu < bounds.cpu, capacity.memoryBytes < bounds.memoryBytes];
      if (!hasCpu && !hasMemory) continue;
      for (const ready of classes) {
        const { cpu = 0, memoryBytes = 0 } = ready.least ?? {};
        if (!(hasCpu && cpu <= capacity.cpu) && !(hasMemory && memoryBytes <= capacity.memoryBytes)) continue;
        classes.delete(ready);
        for (const lane of ready.lanes.values()) group.delete(lane);
        this.#move(ready);
      }
      const [left] = classes;
      if (left === undefined) this.#forget(known);
      else group.least = left.least;
    }
  }

  #move(ready: ReadyClass): void {
    const group = this.#join(ready);
    for (const lane of ready.lanes.values()) group.add(ready, lane);
  }

  #forget({ group }: Known): void {
    this.#byId.delete(group.id);
    this.#near.delete(group);
  }

  #join(ready: ReadyClass): ReadyGroup {
    const { labels, runner, least } = ready;
    const bounds = this.#sizes.boundsOf(least);
    const id = JSON.stringify([labels, runner, `${bounds.cpu} ${bounds.memoryBytes}`]);
    let known = this.#byId.get(id);
    if (known === undefined) {
      known = { group: new ReadyGroup(id, ready), classes: new Set(), bounds };
      this.#byId.set(id, known);
      this.#near.add(known.group);
    }
    known.classes.add(ready);
    this.#ofClass.set(ready, known.group);
    return known.group;
  }

  /** Throws InvariantBroken. */
  assertInvariants(): void {
    let [lanes, held] = [0, 0];
    for (const [ready, group] of this.#ofClass) {
      lanes += ready.lanes.size;
      for (const lane of ready.lanes.values())
        invariant('GROUP-1', group.holds(lane), 'a lane has no turn', () => ({ class: ready.id, key: lane.key }));
    }
    for (const { group } of this.#byId.values()) {
      const { placed, turns, empty, lanes: own } = group.placed;
      held += own;
      invariant('GROUP-2', empty === 0, 'turns stand without a lane', () => ({ group: group.id, turns, empty }));
      invariant('GROUP-1', placed === turns, 'a turn is not in the order of its group once', () => ({
        group: group.id,
        turns,
        placed,
      }));
    }
    invariant('GROUP-1', lanes === held, 'a lane that is gone has a turn', () => ({ lanes, held }));
  }
}

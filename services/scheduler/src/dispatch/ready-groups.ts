/**
 * Which classes of waiting stages go together, and which groups a session has to look at. It owns the groups; what is in one is put together
 * by what the runners have, so all are made anew where one has what none had.
 */
import { invariant } from '../run/invariant.ts';
import type { ReadyClass } from './ready-class.ts';
import { ReadyClasses } from './ready-classes.ts';
import { ReadyGroup } from './ready-group.ts';
import type { Session } from './sessions.ts';
import { Sizes } from './sizes.ts';

export class ReadyGroups {
  readonly #sizes = new Sizes();
  #near = new ReadyClasses<ReadyGroup>();
  readonly #byId = new Map<string, { readonly group: ReadyGroup; readonly classes: Set<ReadyClass> }>();
  readonly #ofClass = new Map<ReadyClass, ReadyGroup>();
  #isOutdated = false;

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
    this.#byId.delete(known.group.id);
    this.#near.delete(known.group);
    return known.group;
  }

  /** Of a session that is everybody's. */
  seen({ capacity }: Session): void {
    this.#isOutdated ||= !this.#sizes.knows(capacity);
  }

  /** True: all groups were made anew, and no turn stands apart. */
  renew(sessions: Iterable<Session>): boolean {
    if (!this.#isOutdated) return false;
    this.#isOutdated = false;
    const shared = [...sessions].filter(({ tenant }) => tenant === undefined);
    this.#sizes.learn(shared.map(({ capacity }) => capacity));
    const classes = [...this.#ofClass.keys()];
    this.#byId.clear();
    this.#ofClass.clear();
    this.#near = new ReadyClasses();
    for (const ready of classes) {
      const group = this.#join(ready);
      for (const lane of ready.lanes.values()) group.add(ready, lane);
    }
    return true;
  }

  #join(ready: ReadyClass): ReadyGroup {
    const { labels, runner, least } = ready;
    const id = JSON.stringify([labels, runner, this.#sizes.rankOf(least)]);
    let known = this.#byId.get(id);
    if (known === undefined) {
      known = { group: new ReadyGroup(id, ready), classes: new Set() };
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

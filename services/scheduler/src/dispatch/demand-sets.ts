/**
 * What waits, per set of labels, as it is announced (P11). Files may ask for any number of sets that no runner has: it owns where the
 * look at those stands.
 *
 *  DEMANDSETS-1 What some runner could take comes apart from the rest, so that it need not wait for its turn among that.
 *  DEMANDSETS-2 Of more than CLASSES_MAX classes, those near the sessions are looked at, LOOKS_MAX in one answer, and some of the others in turn.
 *  DEMANDSETS-3 What was found to be served is looked at in every answer, LOOKS_MAX as well, and what has come since before its turn: many that
 *     stand near all sessions, and ask for more memory than any has, keep no others from being named.
 */
import type { Least } from '@penstock/pipeline';
import type { Lane } from './lane.ts';
import type { OwnLanes } from './own-lanes.ts';
import { isServed, type Pools } from './pools.ts';
import type { ReadyClass } from './ready-class.ts';
import type { ReadyClasses } from './ready-classes.ts';
import type { Session, Sessions } from './sessions.ts';

interface Waiting {
  readonly labels: readonly string[];
  readonly least?: Least | undefined;
  readonly count: number;
  /** Of these, those of keys that may have another slot while others wait. */
  readonly below: number;
}

/** What some runner could take, and what none could, as far as is known here. */
export type WaitingSets = readonly [served: readonly Waiting[], others: readonly Waiting[]];

export interface DemandSetsParts {
  readonly classes: ReadonlyMap<string, ReadyClass>;
  readonly near: Pick<ReadyClasses<ReadyClass>, 'near'>;
  readonly sessions: Pick<Sessions, 'values' | 'size'>;
  readonly pools: Pick<Pools, 'of'>;
  readonly isPaused: (ready: ReadyClass, lane: Lane) => boolean;
  readonly isFull: (ready: ReadyClass, lane: Lane) => boolean;
}

interface Counted {
  readonly waiting: { -readonly [K in keyof Waiting]: Waiting[K] };
  isServed: boolean;
}

/** They take some milliseconds. */
const CLASSES_MAX = 10_000;
const LOOKS_MAX = 10_000;
const OTHERS_MAX = 1_000;
/** Of a tenant with runners of its own, however many such tenants there are. */
const OWN_LOOKS_MIN = 100;

export class DemandSets {
  readonly #parts: DemandSetsParts;
  #sessions: Iterator<Session> = [].values();
  #others: Iterator<ReadyClass> = [].values();
  /** DEMANDSETS-3. By the last look at each. */
  readonly #served = new Set<ReadyClass>();
  #servedTurn: Iterator<ReadyClass> = [].values();
  readonly #added = new Set<ReadyClass>();

  constructor(parts: DemandSetsParts) {
    this.#parts = parts;
  }

  added(ready: ReadyClass): void {
    this.#added.add(ready);
  }

  deleted(ready: ReadyClass): void {
    this.#added.delete(ready);
    this.#served.delete(ready);
  }

  take(): WaitingSets {
    const counts = new Map<string, Counted>();
    for (const ready of this.#looked()) this.#count(ready, counts);
    const waiting = [...counts.values()].filter(({ waiting: { count } }) => count > 0);
    const { served = [], others = [] } = Object.groupBy(waiting, (each) => (each.isServed ? 'served' : 'others'));
    return [served.map((each) => each.waiting), others.map((each) => each.waiting)];
  }

  #count(ready: ReadyClass, counts: Map<string, Counted>): void {
    const { pools, isPaused, isFull } = this.#parts;
    let counted = counts.get(ready.labelSet);
    if (counted === undefined) {
      counted = { waiting: { labels: ready.labels, ...leastOf(ready), count: 0, below: 0 }, isServed: false };
      counts.set(ready.labelSet, counted);
    }
    const { waiting } = counted;
    for (const lane of ready.lanes.values()) {
      if (isPaused(ready, lane)) continue;
      waiting.count += lane.count;
      if (lane.count > 0 && !isFull(ready, lane)) waiting.below += lane.count;
    }
    if (!isServed(pools.of(ready))) {
      this.#served.delete(ready);
      return;
    }
    this.#served.add(ready);
    counted.isServed = true;
  }

  /** DEMANDSETS-2 */
  #looked(): Iterable<ReadyClass> {
    const { classes } = this.#parts;
    if (classes.size <= CLASSES_MAX) return classes.values();
    const looked = this.#nearSessions();
    this.#servedTurn = nextOf(this.#servedTurn, this.#served, LOOKS_MAX, (ready) => looked.add(ready));
    this.#lookAtAdded(looked);
    this.#others = nextOf(this.#others, classes, OTHERS_MAX, (ready) => looked.add(ready));
    return looked;
  }

  /** Those that nobody serves have their turn among the others. */
  #lookAtAdded(looked: Set<ReadyClass>): void {
    let looks = LOOKS_MAX;
    for (const ready of this.#added) {
      if ((looks -= 1) < 0) return;
      this.#added.delete(ready);
      if (isServed(this.#parts.pools.of(ready))) looked.add(ready);
    }
  }

  #nearSessions(): Set<ReadyClass> {
    const { near, sessions } = this.#parts;
    const looked = new Set<ReadyClass>();
    let looks = LOOKS_MAX;
    const look = (session: Session): void => {
      for (const ready of near.near(session.runner, session.labels)) {
        if ((looks -= 1) < 0) return;
        looked.add(ready);
      }
    };
    for (let asked = 0; asked < sessions.size && looks > 0; asked += 1)
      this.#sessions = nextOf(this.#sessions, { values: () => sessions.values()[Symbol.iterator]() }, 1, look);
    return looked;
  }
}

/** The next `count` of those that there are, from where an earlier walk stands; then it begins anew. */
function nextOf<Item>(
  walk: Iterator<Item>,
  all: { values(): Iterator<Item> },
  count: number,
  take: (item: Item) => void,
): Iterator<Item> {
  let at = walk;
  for (let taken = 0, begun = 0; taken < count && begun < 2;) {
    const { value, done } = at.next();
    if (done === true) {
      at = all.values();
      begun += 1;
    } else {
      take(value);
      taken += 1;
    }
  }
  return at;
}

/** What waits of a tenant, as it is announced to its own runners. */
type WaitingOfTenant = Pick<Waiting, 'labels' | 'least' | 'count'>;

/** Tenants with runners of their own, and what of theirs waits, per set of labels: of very many sets some in each answer, and the others in turn. */
export function* demandOfTenants(
  own: Pick<OwnLanes, 'tenants' | 'someOf'>,
  isPaused: (ready: ReadyClass, lane: Lane) => boolean,
): Generator<readonly [tenant: string, waiting: readonly WaitingOfTenant[]]> {
  const { tenants } = own;
  const looksOfEach = Math.max(OWN_LOOKS_MIN, Math.floor(LOOKS_MAX / Math.max(1, tenants.length)));
  for (const tenant of tenants) {
    const counts = new Map<string, WaitingOfTenant & { count: number }>();
    for (const { ready, lane } of own.someOf(tenant, looksOfEach)) {
      if (lane.count === 0 || isPaused(ready, lane)) continue;
      const known = counts.get(ready.labelSet);
      if (known === undefined)
        counts.set(ready.labelSet, { labels: ready.labels, ...leastOf(ready), count: lane.count });
      else known.count += lane.count;
    }
    yield [tenant, [...counts.values()]];
  }
}

function leastOf({ least }: ReadyClass): { readonly least?: Least } {
  return least === undefined ? {} : { least };
}

/**
 * Which runs of a key may go on: the turns of its concurrency groups, and the concurrency slots under its quota (P23). Owns
 * who has a slot and who is held; a run itself does not know.
 *
 *  SLOTS-1 A run goes on when it is the first of its group and has one of the key's slots. Both are its own until it has
 *          settled: it has ended, and its processes are gone. While nothing of it is open but gates, it keeps its turn and has no
 *          slot (P26). (A journal that has lost its end in a power cut may leave two
 *          runs of a group that both go on: a take-over finds them so, and they end so.)
 *  SLOTS-2 Runs whose turn has come get slots in the order of their creation, which is that of their times and then their
 *          ids: the same to every owner. While one waits, no slot is free, but for the moments of SLOTS-6.
 *  SLOTS-3 A held run has no slot, so what it waits for never waits for it.
 *  SLOTS-4 Every run that has not settled is known here as one of the two, in memory or parked outside: there it keeps its slot, or
 *          waits for one; or as resting: it wants none. A run that waits for an approval is neither: its place is that of its approval.
 *  SLOTS-5 A run outside whose turn has come has its slot before it knows: it is told when it is back. Where the limit falls
 *          meanwhile, it is held again, for what begins to go on does so under the limit of its own commit.
 *  SLOTS-6 For one reason few runs of a key go on in one turn, however many have had their turn: each may end as it does, and so give the
 *          next of its group its own. The others go on in the turns that follow (`goOn`), key by key.
 */
import type { RunId } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import { invariant } from '../run/invariant.ts';
import { inSlices } from '../run/slices.ts';
import { ConcurrencyGroups } from './groups.ts';

/** One that waits, as little of it as says when its turn comes. */
interface Waiting {
  readonly id: RunId;
  /** The time from which it waits: its creation, or its approval. */
  readonly turn: number;
  readonly group: string | undefined;
  isOutside: boolean;
}

/** A run as a take-over finds it. */
export interface FoundRun extends Waiting {
  readonly key: string;
  readonly held: boolean;
  /** Only gates of it are open. */
  readonly rests: boolean;
  /** It has settled, or waits for an approval: it is none of those that wait here or have a slot. */
  readonly isApart: boolean;
}

interface KeySlots {
  /** How many may have a slot at a time; Infinity: any number. */
  limit: number;
  readonly taken: Set<RunId>;
  readonly held: Map<RunId, Waiting>;
  /** SLOTS-5: those that have a slot and are not told yet, in the order in which they got it. */
  readonly called: Map<RunId, Waiting>;
  /** Those of which only gates are open. They are in memory. */
  readonly resting: Set<RunId>;
  /** In memory, ended ones included, and parked outside. */
  runs: number;
  /** How many of them are parked outside, and how many of those have a slot. */
  outside: number;
  takenOutside: number;
  /** The latest creation among the held and the called ones since there were none. */
  newestHeldAt: number;
  /** Held, and the first of their groups: they wait for a slot alone. In the order of their creation. */
  readonly ready: Waiting[];
  admitting: boolean;
}

/** Where a held run stands. */
export interface HeldPlace {
  readonly kind: 'group' | 'quota';
  readonly group?: string | undefined;
  readonly limit?: number | undefined;
  /** Those that have what it waits for, the longest first; not all where they are very many. */
  readonly goesOn: readonly RunId[];
  /** Those that wait before it; not all where they are very many. */
  readonly ahead: readonly RunId[];
  /** From 1. */
  readonly position: number;
  readonly turn: number;
}

/** SLOTS-6: 0.2 ms each. */
const ADMITTED_AT_ONCE = 40;
/** Of runs before another one that are named. */
const AHEAD_MAX = 1_000;

export interface ConcurrencySlotsHost {
  /** Of a run in memory or parked outside. */
  turnOf(runId: RunId): number | undefined;
  /** The run has its turn and a slot: it goes on, as soon as it is in memory. */
  admit(runId: RunId): void;
  /** A run outside that was admitted, and is not told: its slot is taken from it, and its turn is still to come. */
  recall(runId: RunId): void;
}

export class ConcurrencySlots {
  readonly #host: ConcurrencySlotsHost;
  readonly #groups = new ConcurrencyGroups();
  readonly #keys = new Map<string, KeySlots>();
  /** Those of which more runs may go on (SLOTS-6), the next one first. */
  readonly #unfinished = new Set<KeySlots>();
  /** Not all runs are known yet: nobody is admitted before it is sure whose turn it is. */
  #restoring = false;

  constructor(host: ConcurrencySlotsHost) {
    this.#host = host;
  }

  liveRuns(key: string): number {
    return this.#keys.get(key)?.runs ?? 0;
  }

  /** The runs of a group that have not settled, the one whose turn it is first. */
  members(key: string, group: string): readonly RunId[] {
    return this.#groups.members(key, group);
  }

  /** What a held run waits for, and where it stands; undefined: it is not held, or about to go on. */
  placeOf(key: string, runId: RunId): HeldPlace | undefined {
    const slots = this.#keys.get(key);
    const waiting = slots?.held.get(runId);
    if (slots === undefined || waiting === undefined) return undefined;
    const { group, turn } = waiting;
    if (group === undefined || this.#isFirst(key, waiting)) {
      if (this.#unfinished.has(slots)) return undefined;
      const position = positionOf(slots.ready, waiting);
      const ahead = slots.ready.slice(0, Math.min(position, AHEAD_MAX)).map(({ id }) => id);
      const goesOn = first(slots.taken, AHEAD_MAX);
      return { kind: 'quota', limit: slots.limit, goesOn, ahead, position: position + 1, turn };
    }
    const of = { key, group, max: AHEAD_MAX };
    const { first: members, before } = this.#groups.placeOf(
      runId,
      of,
      (other) => (this.#host.turnOf(other) ?? 0) < turn,
    );
    return { kind: 'group', group, goesOn: members.slice(0, 1), ahead: members.slice(1), position: before, turn };
  }

  /** A run created at `at` stands behind all that it may have to wait for: no two of them have the same time. */
  timeOfNext(key: string, group: string | undefined, at: number): number {
    const slots = this.#keys.get(key);
    const last = group === undefined ? undefined : this.#host.turnOf(this.#groups.last(key, group) ?? '');
    return Math.max(at, (last ?? 0) + 1, slots === undefined || areNoneHeld(slots) ? 0 : slots.newestHeldAt + 1);
  }

  /**
   * The limit of the key's newest run; where there are more slots than before, those that wait go on, and where there are fewer,
   * those that do not know yet wait again. Infinity: any number.
   */
  setLimit(key: string, limit: number): void {
    const slots = this.#slotsOf(key);
    slots.limit = limit;
    this.#recall(slots);
    this.#admitReady(slots);
  }

  /** Takes a new run in; answers what it waits for, if anything. */
  enter(run: LiveRun): 'group' | 'quota' | undefined {
    this.#slotsOf(run.state.key).runs += 1;
    return this.#place(run, run.state.createdAt);
  }

  /** The same of one that has waited for its approval, and gets it at this time: `timeOfNext`. */
  approved(run: LiveRun, at: number): 'group' | 'quota' | undefined {
    return this.#place(run, at);
  }

  #place(run: LiveRun, turn: number): 'group' | 'quota' | undefined {
    const { key, group } = run.state;
    const slots = this.#slotsOf(key);
    if (group !== undefined) this.#groups.enter(key, group, run.id);
    const waiting = { id: run.id, turn, group, isOutside: false };
    const isFirst = this.#isFirst(key, waiting);
    if (isFirst && slots.taken.size < slots.limit && slots.ready.length === 0) {
      slots.taken.add(run.id);
      return undefined;
    }
    hold(slots, waiting);
    if (!isFirst) return 'group';
    insert(slots.ready, waiting);
    return 'quota';
  }

  /** Takes a run in that has ended as it began, or waits for an approval: it waits for nothing here and takes no slot. */
  enterApart(run: LiveRun): void {
    this.#slotsOf(run.state.key).runs += 1;
  }

  // --- Take-over ---------------------------------------------------------------------------------------------------

  /** Takes over what an earlier owner left, in the order of creation. Nobody is admitted before `open`. */
  *restore(runs: readonly FoundRun[], limitOf: (key: string) => number): Generator<void, void> {
    this.#restoring = true;
    const held: FoundRun[] = [];
    yield* inSlices(runs, (run) => {
      const { id, key, group, isOutside } = run;
      const slots = this.#slotsOf(key);
      slots.limit = limitOf(key);
      slots.runs += 1;
      if (isOutside) slots.outside += 1;
      if (run.isApart) return;
      if (group !== undefined) this.#groups.enter(key, group, id);
      if (run.rests) {
        slots.resting.add(id);
        return;
      }
      if (run.held) {
        hold(slots, { id, turn: run.turn, group, isOutside });
        held.push(run);
        return;
      }
      slots.taken.add(id);
      if (isOutside) slots.takenOutside += 1;
    });
    yield* inSlices(held, ({ id, key }) => {
      const slots = this.#slotsOf(key);
      const waiting = slots.held.get(id);
      if (waiting !== undefined && this.#isFirst(key, waiting)) insert(slots.ready, waiting);
    });
  }

  /** The end of the run before may have been committed, and the owner gone before this one's turn was: they go on now. */
  *open(): Generator<void, void> {
    this.#restoring = false;
    yield* inSlices(this.#keys.values(), (slots) => this.#admitReady(slots));
  }

  // --- Outside of memory -------------------------------------------------------------------------------------------

  /** How many runs of the key in memory have a slot, and whether others wait for what those outside have. */
  use(key: string): { readonly taken: number; readonly areWanted: boolean } {
    const slots = this.#keys.get(key);
    if (slots === undefined) return { taken: 0, areWanted: false };
    return { taken: slots.taken.size - slots.takenOutside, areWanted: slots.held.size > 0 };
  }

  has(run: LiveRun): boolean {
    return this.#keys.get(run.state.key)?.taken.has(run.id) === true;
  }

  /** The run leaves memory with its slot, or waits for one outside from now on. */
  park(run: LiveRun): void {
    this.#moved(run, true);
  }

  /** It is back. */
  unpark(run: LiveRun): void {
    this.#moved(run, false);
  }

  #moved({ id, state }: LiveRun, isOutside: boolean): void {
    const slots = this.#slotsOf(state.key);
    const by = isOutside ? 1 : -1;
    slots.outside += by;
    if (slots.taken.has(id)) slots.takenOutside += by;
    slots.called.delete(id);
    const waiting = slots.held.get(id);
    if (waiting !== undefined) waiting.isOutside = isOutside;
  }

  // --- Gates -------------------------------------------------------------------------------------------------------

  /** Only gates of the run are open: its slot is free, in the same commit. */
  rested(run: LiveRun): void {
    const slots = this.#slotsOf(run.state.key);
    slots.taken.delete(run.id);
    slots.resting.add(run.id);
    this.#admitReady(slots);
  }

  /** A stage of it has fallen due: it waits in the order of creation, and may go on at once. */
  wants({ id, state }: LiveRun): void {
    const slots = this.#slotsOf(state.key);
    slots.resting.delete(id);
    const waiting = { id, turn: turnOf(state), group: state.group, isOutside: false };
    hold(slots, waiting);
    insert(slots.ready, waiting);
    this.#admitReady(slots);
  }

  /** Runs that have had their turn are still to go on. */
  get isBusy(): boolean {
    return this.#unfinished.size > 0;
  }

  /** The next ones, at most so many; how many there were. */
  goOn(max: number): number {
    let count = 0;
    for (let keys = this.#unfinished.size; keys > 0 && count < max; keys -= 1) {
      const [slots] = this.#unfinished;
      if (slots === undefined) break;
      this.#unfinished.delete(slots);
      count += this.#admitReady(slots, Math.ceil((max - count) / keys));
    }
    return count;
  }

  // --- Ends --------------------------------------------------------------------------------------------------------

  /** Frees what the run had: the next ones go on, in the same commit. */
  settled(run: LiveRun): void {
    const { key, group } = run.state;
    const slots = this.#slotsOf(key);
    slots.taken.delete(run.id);
    slots.resting.delete(run.id);
    const waiting = slots.held.get(run.id);
    if (waiting !== undefined) {
      slots.held.delete(run.id);
      remove(slots.ready, waiting);
    }
    const next = group === undefined ? undefined : slots.held.get(this.#groups.leave(key, group, run.id) ?? '');
    if (next !== undefined) insert(slots.ready, next);
    this.#admitReady(slots);
  }

  /** The run leaves memory. */
  forget(run: LiveRun): void {
    const { key } = run.state;
    const slots = this.#slotsOf(key);
    slots.runs -= 1;
    if (slots.runs > 0) return;
    this.#keys.delete(key);
    this.#unfinished.delete(slots);
  }

  /** `runs` are all those in memory, between two steps. Throws InvariantBroken. */
  assertInvariants(runs: Iterable<LiveRun>): void {
    const known = new Map<string, number>();
    for (const run of runs) {
      const { key } = run.state;
      known.set(key, (known.get(key) ?? 0) + 1);
      this.#assertKnown(run, this.#keys.get(key));
    }
    for (const [key, slots] of this.#keys) this.#assertKey(key, slots, known.get(key) ?? 0);
  }

  /** What can be said of these runs without looking at the others. */
  assertRuns(runs: Iterable<LiveRun>): void {
    for (const run of runs) this.#assertKnown(run, this.#keys.get(run.state.key));
  }

  #assertKnown(run: LiveRun, slots: KeySlots | undefined): void {
    const hasSlot = slots?.taken.has(run.id) === true;
    const isHeld = slots?.held.has(run.id) === true;
    const rests = slots?.resting.has(run.id) === true;
    const facts = (): Record<string, unknown> => ({
      run: run.id,
      hasSlot,
      isHeld,
      rests,
      settled: run.settled,
      held: run.state.held,
    });
    invariant('SLOTS-3', !(hasSlot && isHeld), 'a held run has a slot', facts);
    const isApart = run.settled || run.state.awaitsApproval === true;
    const isKnown = isApart || hasSlot || isHeld || rests;
    invariant('SLOTS-4', isKnown, 'a run neither has a slot nor is held nor rests', facts);
    const restsRightly = isApart || rests === (run.state.rested === true);
    invariant('SLOTS-4', restsRightly, "a run's rest differs from its owner's", facts);
    const restsAlone = !rests || (!hasSlot && !isHeld && !isApart);
    invariant('SLOTS-4', restsAlone, 'a resting run has a slot or waits for one', facts);
    invariant('SLOTS-1', !(isApart && (hasSlot || isHeld)), 'a settled run keeps a slot or waits for one', facts);
    invariant('SLOTS-3', isApart || run.state.held === isHeld, "a run's state differs from its owner's", facts);
    invariant(
      'SLOTS-1',
      !hasSlot || this.#isFirst(run.state.key, { id: run.id, group: run.state.group }),
      'a run goes on before its turn in its group',
      facts,
    );
  }

  #assertKey(key: string, slots: KeySlots, known: number): void {
    const { limit, taken, held, called, resting, ready, runs, outside, takenOutside } = slots;
    const facts = (): Record<string, unknown> => ({
      key,
      limit,
      taken: taken.size,
      held: held.size,
      ready: ready.map(({ id }) => id),
      runs,
      outside,
      takenOutside,
      known,
    });
    invariant(
      'SLOTS-4',
      runs === known + outside && taken.size + held.size + resting.size <= runs,
      'a run is nowhere',
      facts,
    );
    const isFull = taken.size >= limit || this.#unfinished.has(slots);
    invariant('SLOTS-2', ready.length === 0 || isFull, 'a run waits while a slot is free', facts);
    const isInOrder = ready.every((run, index) => index === 0 || byTurn(ready[index - 1] as Waiting, run) < 0);
    invariant('SLOTS-2', isInOrder, 'runs do not wait in the order of their creation', facts);
    const first = [...held.values()].filter((run) => this.#isFirst(key, run));
    const areReady = first.length === ready.length && ready.every((run) => held.has(run.id) && this.#isFirst(key, run));
    invariant('SLOTS-2', areReady, 'those whose turn has come are not those that wait for a slot', facts);
    let heldOutside = 0;
    for (const { isOutside } of held.values()) if (isOutside) heldOutside += 1;
    invariant('SLOTS-4', heldOutside + takenOutside === outside, 'a run outside neither has a slot nor is held', facts);
    const areCalledRightly =
      called.size <= takenOutside &&
      (called.size === 0 || taken.size <= limit) &&
      [...called.keys()].every((id) => taken.has(id) && !held.has(id));
    invariant('SLOTS-5', areCalledRightly, 'a run outside is to go on above the limit', facts);
  }

  /** One after the other, however many end as soon as they go on: what settles meanwhile only frees its slot. How many; keeps SLOTS-6. */
  #admitReady(slots: KeySlots, max = ADMITTED_AT_ONCE): number {
    if (this.#restoring || slots.admitting || this.#unfinished.has(slots)) return 0;
    slots.admitting = true;
    let count = 0;
    try {
      for (; slots.taken.size < slots.limit && slots.ready.length > 0; count += 1) {
        if (count === max) {
          this.#unfinished.add(slots);
          break;
        }
        this.#admitNext(slots);
      }
    } finally {
      slots.admitting = false;
    }
    return count;
  }

  #admitNext(slots: KeySlots): void {
    const run = slots.ready.shift();
    if (run === undefined) return;
    slots.held.delete(run.id);
    slots.taken.add(run.id);
    if (run.isOutside) {
      slots.takenOutside += 1;
      slots.called.set(run.id, run);
    }
    this.#host.admit(run.id);
  }

  /** SLOTS-5. The last ones first; each is still the first of its group. */
  #recall(slots: KeySlots): void {
    const { taken, called, ready, limit } = slots;
    const tooMany = Math.min(called.size, taken.size - limit);
    if (tooMany <= 0) return;
    for (const run of [...called.values()].slice(-tooMany)) {
      hold(slots, run);
      called.delete(run.id);
      taken.delete(run.id);
      slots.takenOutside -= 1;
      ready.push(run);
      this.#host.recall(run.id);
    }
    // Whole lists of them at once: not one by one to their places.
    ready.sort(byTurn);
  }

  #isFirst(key: string, { id, group }: Pick<Waiting, 'id' | 'group'>): boolean {
    return group === undefined || this.#groups.isFirst(key, group, id);
  }

  #slotsOf(key: string): KeySlots {
    let slots = this.#keys.get(key);
    if (slots === undefined) {
      slots = {
        limit: Number.POSITIVE_INFINITY,
        taken: new Set(),
        held: new Map(),
        called: new Map(),
        resting: new Set(),
        runs: 0,
        outside: 0,
        takenOutside: 0,
        newestHeldAt: 0,
        ready: [],
        admitting: false,
      };
      this.#keys.set(key, slots);
    }
    return slots;
  }
}

function first<T>(values: Iterable<T>, max: number): T[] {
  const found: T[] = [];
  for (const value of values) {
    if (found.length === max) break;
    found.push(value);
  }
  return found;
}

function hold(slots: KeySlots, run: Waiting): void {
  slots.newestHeldAt = areNoneHeld(slots) ? run.turn : Math.max(slots.newestHeldAt, run.turn);
  slots.held.set(run.id, run);
}

/** Nor any that may be again. */
function areNoneHeld({ held, called }: KeySlots): boolean {
  return held.size === 0 && called.size === 0;
}

/** By the times from which they wait. */
export function byTurn(a: Pick<Waiting, 'id' | 'turn'>, b: Pick<Waiting, 'id' | 'turn'>): number {
  return a.turn - b.turn || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** When a run's turn began to count. */
export function turnOf({
  approvedAt,
  createdAt,
}: {
  readonly approvedAt?: number | undefined;
  readonly createdAt: number;
}): number {
  return approvedAt ?? createdAt;
}

/** Nearly always at the end; what is moved for an earlier position are a few kilobytes of pointers. */
function insert(runs: Waiting[], run: Waiting): void {
  const last = runs.at(-1);
  if (last === undefined || byTurn(last, run) < 0) runs.push(run);
  else runs.splice(positionOf(runs, run), 0, run);
}

function remove(runs: Waiting[], run: Waiting): void {
  const position = positionOf(runs, run);
  if (runs[position] === run) runs.splice(position, 1);
}

/** Where the run stands, or would. */
function positionOf(runs: readonly Waiting[], run: Waiting): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byTurn(runs[middle] as Waiting, run) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

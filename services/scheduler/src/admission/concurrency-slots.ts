/**
 * Which runs of a key may go on: the turns of its concurrency groups, and the concurrency slots under its quota (P23). Owns
 * who has a slot and who is held; a run itself does not know.
 *
 *  SLOTS-1 A run goes on when it is the first of its group and has one of the key's slots. Both are its own until it has
 *          settled: it has ended, and its processes are gone. While nothing of it is open but gates, it keeps its turn and has no slot (P26). (A journal that has lost its end in a power cut may leave two
 *          runs of a group that both go on: a take-over finds them so, and they end so.)
 *  SLOTS-2 Runs whose turn has come get slots in the order of their creation, which is that of their times and then their
 *          ids: the same to every owner. While one waits, no slot is free.
 *  SLOTS-3 A held run has no slot, so what it waits for never waits for it.
 *  SLOTS-4 Every run in memory that has not settled is known here as one of the two, or as resting: it wants no slot; unless it
 *          waits for an approval: its place is that of its approval. One that is parked outside keeps its slot.
 */
import type { RunId } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import { invariant } from '../run/invariant.ts';
import { inSlices } from '../run/slices.ts';
import { ConcurrencyGroups } from './groups.ts';

interface KeySlots {
  /** How many may have a slot at a time; Infinity: any number. */
  limit: number;
  readonly taken: Set<LiveRun>;
  /** How many runs that are parked outside of memory have one as well. */
  parked: number;
  readonly held: Set<LiveRun>;
  /** Those of which only gates are open. */
  readonly resting: Set<LiveRun>;
  /** In memory, ended ones included, and parked outside. */
  runs: number;
  /** The latest creation among the held ones since there were none. */
  newestHeldAt: number;
  /** Held, and the first of their groups: they wait for a slot alone. In the order of their creation. */
  readonly ready: LiveRun[];
  admitting: boolean;
}

export interface ConcurrencySlotsHost {
  runOf(runId: RunId): LiveRun | undefined;
  /** The run has its turn and a slot: it goes on. */
  admit(run: LiveRun): void;
}

export class ConcurrencySlots {
  readonly #host: ConcurrencySlotsHost;
  readonly #groups = new ConcurrencyGroups();
  readonly #keys = new Map<string, KeySlots>();
  /** Of runs that are being approved, when. */
  readonly #approvedAt = new WeakMap<LiveRun, number>();
  /** Not all runs are known yet: nobody is admitted before it is sure whose turn it is. */
  #restoring = false;

  constructor(host: ConcurrencySlotsHost) {
    this.#host = host;
  }

  liveRuns(key: string): number {
    return this.#keys.get(key)?.runs ?? 0;
  }

  /** The runs of a group that have not settled, the one whose turn it is first. */
  members(key: string, group: string): readonly string[] {
    return this.#groups.members(key, group);
  }

  /** A run created at `at` stands behind all that it may have to wait for: no two of them have the same time. */
  timeOfNext(key: string, group: string | undefined, at: number): number {
    const slots = this.#keys.get(key);
    const last = group === undefined ? undefined : this.#host.runOf(this.#groups.last(key, group) ?? '');
    return Math.max(
      at,
      (last === undefined ? 0 : this.#turnOf(last)) + 1,
      slots === undefined || slots.held.size === 0 ? 0 : slots.newestHeldAt + 1,
    );
  }

  /** The limit of the key's newest run; where there are more slots than before, those that wait go on. Infinity: any number. */
  setLimit(key: string, limit: number): void {
    const slots = this.#slotsOf(key);
    slots.limit = limit;
    this.#admitReady(slots);
  }

  /** Takes a new run in; answers what it waits for, if anything. */
  enter(run: LiveRun): 'group' | 'quota' | undefined {
    this.#slotsOf(run.state.key).runs += 1;
    return this.#place(run);
  }

  /** The same of one that has waited for its approval, and gets it at this time: `timeOfNext`. */
  approved(run: LiveRun, at: number): 'group' | 'quota' | undefined {
    this.#approvedAt.set(run, at);
    return this.#place(run);
  }

  #place(run: LiveRun): 'group' | 'quota' | undefined {
    const { key, group } = run.state;
    const slots = this.#slotsOf(key);
    if (group !== undefined) this.#groups.enter(key, group, run.id);
    const isFirst = this.#isFirst(run);
    if (isFirst && takenOf(slots) < slots.limit && slots.ready.length === 0) {
      slots.taken.add(run);
      return undefined;
    }
    this.#hold(slots, run);
    if (!isFirst) return 'group';
    this.#insert(slots.ready, run);
    return 'quota';
  }

  /** Takes a run in that has ended as it began, or waits for an approval: it waits for nothing here and takes no slot. */
  enterApart(run: LiveRun): void {
    this.#slotsOf(run.state.key).runs += 1;
  }

  // --- Take-over ---------------------------------------------------------------------------------------------------

  /** Takes over what an earlier owner left, in the order of creation. Nobody is admitted before `open`. */
  *restore(runs: readonly LiveRun[], limitOf: (key: string) => number): Generator<void, void> {
    this.#restoring = true;
    const held: LiveRun[] = [];
    yield* inSlices(runs, (run) => {
      const { key, group } = run.state;
      const slots = this.#slotsOf(key);
      slots.limit = limitOf(key);
      slots.runs += 1;
      if (run.settled || run.state.awaitsApproval === true) return;
      if (group !== undefined) this.#groups.enter(key, group, run.id);
      if (run.state.rested === true) slots.resting.add(run);
      else if (!run.state.held) slots.taken.add(run);
      else {
        this.#hold(slots, run);
        held.push(run);
      }
    });
    yield* inSlices(held, (run) => {
      if (this.#isFirst(run)) this.#insert(this.#slotsOf(run.state.key).ready, run);
    });
  }

  /** The end of the run before may have been committed, and the owner gone before this one's turn was: they go on now. */
  *open(): Generator<void, void> {
    this.#restoring = false;
    yield* inSlices(this.#keys.values(), (slots) => this.#admitReady(slots));
  }

  // --- Outside of memory -------------------------------------------------------------------------------------------

  /** How many runs of the key in memory have a slot, and whether others wait for one. */
  use(key: string): { readonly taken: number; readonly areWanted: boolean } {
    const slots = this.#keys.get(key);
    return { taken: slots?.taken.size ?? 0, areWanted: (slots?.ready.length ?? 0) > 0 };
  }

  /** The run leaves memory with its slot. */
  park(run: LiveRun): void {
    const slots = this.#slotsOf(run.state.key);
    if (slots.taken.delete(run)) slots.parked += 1;
  }

  /** It is back. */
  unpark(run: LiveRun): void {
    const slots = this.#slotsOf(run.state.key);
    slots.parked -= 1;
    slots.taken.add(run);
  }

  /** Takes over a run that is outside. */
  restoreParked(key: string, limitOf: (key: string) => number): void {
    const slots = this.#slotsOf(key);
    slots.limit = limitOf(key);
    slots.runs += 1;
    slots.parked += 1;
  }

  // --- Gates -------------------------------------------------------------------------------------------------------

  /** Only gates of the run are open: its slot is free, in the same commit. */
  rested(run: LiveRun): void {
    const slots = this.#slotsOf(run.state.key);
    slots.taken.delete(run);
    slots.resting.add(run);
    this.#admitReady(slots);
  }

  /** A stage of it has fallen due: it waits in the order of creation, and may go on at once. */
  wants(run: LiveRun): void {
    const slots = this.#slotsOf(run.state.key);
    slots.resting.delete(run);
    this.#hold(slots, run);
    this.#insert(slots.ready, run);
    this.#admitReady(slots);
  }

  // --- Ends --------------------------------------------------------------------------------------------------------

  /** Frees what the run had: the next ones go on, in the same commit. */
  settled(run: LiveRun): void {
    const { key, group } = run.state;
    const slots = this.#slotsOf(key);
    slots.taken.delete(run);
    slots.resting.delete(run);
    if (slots.held.delete(run)) this.#remove(slots.ready, run);
    const next = group === undefined ? undefined : this.#host.runOf(this.#groups.leave(key, group, run.id) ?? '');
    if (next !== undefined && slots.held.has(next)) this.#insert(slots.ready, next);
    this.#admitReady(slots);
  }

  /** The run leaves memory. */
  forget(run: LiveRun): void {
    const { key } = run.state;
    const slots = this.#slotsOf(key);
    slots.runs -= 1;
    if (slots.runs === 0) this.#keys.delete(key);
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
    const hasSlot = slots?.taken.has(run) === true;
    const isHeld = slots?.held.has(run) === true;
    const rests = slots?.resting.has(run) === true;
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
    invariant(
      'SLOTS-4',
      isApart || hasSlot || isHeld || rests,
      'a run neither has a slot nor is held nor rests',
      facts,
    );
    invariant(
      'SLOTS-4',
      isApart || rests === (run.state.rested === true),
      "a run's rest differs from its owner's",
      facts,
    );
    invariant(
      'SLOTS-4',
      !rests || (!hasSlot && !isHeld && !isApart),
      'a resting run has a slot or waits for one',
      facts,
    );
    invariant('SLOTS-1', !(isApart && (hasSlot || isHeld)), 'a settled run keeps a slot or waits for one', facts);
    invariant('SLOTS-3', isApart || run.state.held === isHeld, "a run's state differs from its owner's", facts);
    invariant('SLOTS-1', !hasSlot || this.#isFirst(run), 'a run goes on before its turn in its group', facts);
  }

  #assertKey(key: string, slots: KeySlots, known: number): void {
    const { limit, taken, parked, held, ready, runs } = slots;
    const facts = (): Record<string, unknown> => ({
      key,
      limit,
      taken: taken.size,
      parked,
      held: held.size,
      ready: ready.map(({ id }) => id),
      runs,
      known,
    });
    invariant(
      'SLOTS-4',
      runs === known + parked && takenOf(slots) + held.size + slots.resting.size <= runs,
      'a run is not in memory',
      facts,
    );
    invariant('SLOTS-2', ready.length === 0 || takenOf(slots) >= limit, 'a run waits while a slot is free', facts);
    const isInOrder = ready.every((run, index) => index === 0 || this.#inTurn(ready[index - 1] as LiveRun, run) < 0);
    invariant('SLOTS-2', isInOrder, 'runs do not wait in the order of their creation', facts);
    const first = [...held].filter((run) => this.#isFirst(run));
    const areReady = first.length === ready.length && ready.every((run) => held.has(run) && this.#isFirst(run));
    invariant('SLOTS-2', areReady, 'those whose turn has come are not those that wait for a slot', facts);
  }

  /** One after the other, however many end as soon as they go on: what settles meanwhile only frees its slot. */
  #admitReady(slots: KeySlots): void {
    if (this.#restoring || slots.admitting) return;
    slots.admitting = true;
    try {
      while (takenOf(slots) < slots.limit) {
        const run = slots.ready.shift();
        if (run === undefined) break;
        slots.held.delete(run);
        slots.taken.add(run);
        this.#host.admit(run);
      }
    } finally {
      slots.admitting = false;
    }
  }

  #hold(slots: KeySlots, run: LiveRun): void {
    const turn = this.#turnOf(run);
    slots.newestHeldAt = slots.held.size === 0 ? turn : Math.max(slots.newestHeldAt, turn);
    slots.held.add(run);
  }

  #turnOf(run: LiveRun): number {
    return this.#approvedAt.get(run) ?? turnOf(run);
  }

  #inTurn(a: LiveRun, b: LiveRun): number {
    return this.#turnOf(a) - this.#turnOf(b) || byTurn(a, b);
  }

  /** Nearly always at the end; what is moved for an earlier position are a few kilobytes of pointers. */
  #insert(runs: LiveRun[], run: LiveRun): void {
    const last = runs.at(-1);
    if (last === undefined || this.#inTurn(last, run) < 0) runs.push(run);
    else runs.splice(this.#positionOf(runs, run), 0, run);
  }

  #remove(runs: LiveRun[], run: LiveRun): void {
    const position = this.#positionOf(runs, run);
    if (runs[position] === run) runs.splice(position, 1);
  }

  /** Where the run stands, or would. */
  #positionOf(runs: readonly LiveRun[], run: LiveRun): number {
    let low = 0;
    let high = runs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#inTurn(runs[middle] as LiveRun, run) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isFirst({ id, state: { key, group } }: LiveRun): boolean {
    return group === undefined || this.#groups.isFirst(key, group, id);
  }

  #slotsOf(key: string): KeySlots {
    let slots = this.#keys.get(key);
    if (slots === undefined) {
      slots = {
        limit: Number.POSITIVE_INFINITY,
        taken: new Set(),
        parked: 0,
        held: new Set(),
        resting: new Set(),
        runs: 0,
        newestHeldAt: 0,
        ready: [],
        admitting: false,
      };
      this.#keys.set(key, slots);
    }
    return slots;
  }
}

function takenOf({ taken, parked }: KeySlots): number {
  return taken.size + parked;
}

/** By the times from which they wait: their creation, or their approval. */
export function byTurn(a: LiveRun, b: LiveRun): number {
  return turnOf(a) - turnOf(b) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

function turnOf({ state: { approvedAt, createdAt } }: LiveRun): number {
  return approvedAt ?? createdAt;
}

/**
 * What keys have used in a month (P23): runs created, and the time of their attempts. Owns the counts that the next
 * `run_created` goes by, and what of them is committed and has to go to the store.
 *
 *  COUNTS-1 The count of a new run is decided on memory, like the run itself, and stands in its `run_created`: a commit that
 *           never comes to be takes its counts with it.
 *  COUNTS-2 What goes to the store is committed, and goes there before the checkpoint that stands for it.
 *  COUNTS-3 Counts are read at a take-over, from the store and the log behind it; runs are never counted by their documents.
 *  COUNTS-4 A run counts as active from the commit in which it goes on until the one in which it settles, but
 *           not while nothing of it is open but gates (P26).
 */
import type { KeyUse } from '@penstock/bus';
import { attemptMs, monthCountOf, monthOf, monthStart, type RunEvent, type Version } from '@penstock/run';
import type { RunCounter } from '@penstock/store';
import { invariant } from '../run/invariant.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { ParkedDocument } from '../run/parked-run.ts';
import { inSlices } from '../run/slices.ts';

/** Keys that are looked at in one call, where a new month has begun or a take-over is over. */
const SWEPT_AT_ONCE = 500;

/** A counter without the commit that it is written for. */
export type KeyCounter = Omit<RunCounter, 'partition' | 'incarnation' | 'sequence'>;

/** What a take-over has found of a key. */
export interface KeyUsage {
  readonly tenant: string;
  readonly key: string;
  /** Of the newest run; null: any number. */
  readonly maxConcurrent: number | null;
  readonly months: readonly {
    readonly month: string;
    readonly runs: number;
    readonly stageMs: number;
    /** Whether the store has it like this. */
    readonly isStored: boolean;
  }[];
}

type Keyed = Pick<KeyUsage, 'tenant' | 'key'>;

interface KeyCount extends Keyed {
  readonly months: Map<string, MonthCount>;
  /** The latest month that it has: its counter says what the key has now. Clocks of owners differ, so it may be yet to come. */
  newest: string;
  /** Those that go on, as committed. */
  readonly active: Set<LiveRun>;
  /** How many of them are parked outside of memory. */
  parked: number;
  maxConcurrent: number | null;
}

interface MonthCount {
  readonly of: KeyCount;
  readonly month: string;
  /** Runs that count, those that are not committed yet included. */
  decided: number;
  runs: number;
  stageMs: number;
}

export class KeyCounts {
  readonly #keys = new Map<string, KeyCount>();
  readonly #dirty = new Set<MonthCount>();
  #sweptFor = '';
  /** Those that the month's sweep has not come to. */
  #toSweep: Iterator<[string, KeyCount]> | undefined;

  /** How many runs of the key count in the month so far. */
  used(key: string, month: string): number {
    return this.#keys.get(key)?.months.get(month)?.decided ?? 0;
  }

  /** What is committed, for whoever asks: it is never older than what anybody was answered. */
  use(key: string, month: string): KeyUse {
    const count = this.#keys.get(key);
    const { runs = 0, stageMs = 0 } = count?.months.get(month) ?? {};
    return { runs, stageMs, active: count === undefined ? 0 : activeOf(count) };
  }

  /** By the key's newest committed run; Infinity: any number. */
  limitOf(key: string): number {
    return this.#keys.get(key)?.maxConcurrent ?? Number.POSITIVE_INFINITY;
  }

  /** A run is created, or approved; the event says which of its month it is. */
  counts(run: LiveRun): void {
    const index = run.events.findIndex((event) => monthCountOf(event) !== undefined);
    const event = run.events[index];
    const runOfMonth = event === undefined ? undefined : monthCountOf(event);
    if (event === undefined || runOfMonth === undefined) return;
    const count = this.#monthOf(run.state, monthOf(event.at));
    count.decided = Math.max(count.decided, runOfMonth);
    if (run.committedVersion > index) count.runs = Math.max(count.runs, runOfMonth);
  }

  /** Events of the run, from this version on, are committed. */
  committed(run: LiveRun, from: Version): void {
    let at = 0;
    for (let index = from - 1; index < run.committedVersion; index++) {
      const event = run.events[index] as RunEvent;
      ({ at } = event);
      if (event.type === 'run_created') this.#createdCommitted(run, event);
      if (event.type === 'run_approved') this.#changed(run, at);
      if (event.type === 'run_created' || event.type === 'run_approved') this.counts(run);
      const ms = attemptMs(run.events, index);
      if (ms !== undefined) this.#changed(run, at).stageMs += ms;
    }
    // What is decided and not committed does not show; its commit will come here too.
    if (run.isCommitted) this.#setActive(run, at);
  }

  #createdCommitted(run: LiveRun, created: Extract<RunEvent, { type: 'run_created' }>): void {
    this.#changed(run, created.at);
    this.#changedNow(run.state, created.at).maxConcurrent = created.maxConcurrent ?? null;
  }

  #setActive(run: LiveRun, at: number): void {
    const { key } = run.state;
    if (goesOn(run) === (this.#keys.get(key)?.active.has(run) === true)) return;
    const { active } = this.#changedNow(run.state, at);
    if (!active.delete(run)) active.add(run);
  }

  /** `runs` are all those in memory, between two steps. Throws InvariantBroken. */
  assertInvariants(runs: Iterable<LiveRun>): void {
    const living = new Set(runs);
    this.assertRuns(living);
    for (const count of this.#keys.values()) assertCount(count, living);
    for (const { of, month } of this.#dirty) {
      const isKept = this.#keys.get(of.key)?.months.has(month) === true;
      invariant('COUNTS-2', isKept, 'a count that the store lacks was forgotten', () => ({ key: of.key, month }));
    }
  }

  /** What can be said of these runs without looking at the others. */
  assertRuns(runs: Iterable<LiveRun>): void {
    for (const run of runs) {
      const isActive = this.#keys.get(run.state.key)?.active.has(run) === true;
      invariant('COUNTS-4', !run.isCommitted || isActive === goesOn(run), 'a run is counted wrongly', () => ({
        run: run.id,
        isActive,
        held: run.state.held,
        settled: run.settled,
      }));
    }
  }

  // --- Outside of memory -------------------------------------------------------------------------------------------

  /** The run leaves memory: if it goes on, it goes on for all that. */
  park(run: LiveRun): void {
    const count = this.#keys.get(run.state.key);
    if (count?.active.delete(run) === true) count.parked += 1;
  }

  /** It is back; `isHeld`: it has waited for its turn, and does not go on yet. */
  unpark(run: LiveRun, isHeld: boolean): void {
    const count = this.#keys.get(run.state.key);
    if (count === undefined || isHeld) return;
    count.parked -= 1;
    count.active.add(run);
  }

  // --- Take-over ---------------------------------------------------------------------------------------------------

  /** Takes over what was found; `runs` are those in memory, all of them committed, in the order of their creation. */
  *restore(
    usages: readonly KeyUsage[],
    runs: readonly LiveRun[],
    now: number,
    parked: readonly ParkedDocument[] = [],
  ): Generator<void, void> {
    const found = new Set<string>();
    yield* inSlices(usages, ({ tenant, key, maxConcurrent, months }) => {
      found.add(key);
      const newest = months.reduce((latest, { month }) => (month > latest ? month : latest), '');
      const count: KeyCount = { tenant, key, months: new Map(), newest, active: new Set(), parked: 0, maxConcurrent };
      this.#keys.set(key, count);
      for (const { month, runs: created, stageMs, isStored } of months) {
        const monthCount: MonthCount = { of: count, month, decided: created, runs: created, stageMs };
        count.months.set(month, monthCount);
        if (!isStored) this.#dirty.add(monthCount);
      }
    });
    /** By key, of those not found, when the newest of its runs was created. */
    const newest = new Map<string, number>();
    // A key that has begun no run for months still has its concurrency slots: its newest open run says how many.
    const tell = (count: KeyCount, createdAt: number, maxConcurrent: number | undefined): void => {
      if (found.has(count.key) || (newest.get(count.key) ?? 0) > createdAt) return;
      newest.set(count.key, createdAt);
      count.maxConcurrent = maxConcurrent ?? null;
    };
    yield* inSlices(runs, (run) => {
      this.counts(run);
      this.#setActive(run, now);
      // What the store says of the key's concurrency slots may be older than what was read here.
      const count = this.#changedNow(run.state, now);
      const [created] = run.events;
      if (created?.type === 'run_created') tell(count, run.state.createdAt, created.maxConcurrent);
    });
    yield* inSlices(parked, (run) => {
      const count = this.#changedNow(run, now);
      if (!run.held) count.parked += 1;
      if (run.runOfMonth !== undefined) {
        const month = this.#monthOf(run, monthOf(run.createdAt));
        month.decided = Math.max(month.decided, run.runOfMonth);
        month.runs = Math.max(month.runs, run.runOfMonth);
      }
      tell(count, run.createdAt, run.maxConcurrent);
    });
  }

  // --- The store ---------------------------------------------------------------------------------------------------

  /** Those that the store has otherwise, as committed now. */
  take(): KeyCounter[] {
    const counters = [...this.#dirty].map(({ of, month, runs, stageMs }) => ({
      tenant: of.tenant,
      key: of.key,
      month,
      runs,
      stageMs,
      active: activeOf(of),
      maxConcurrent: of.maxConcurrent,
    }));
    this.#dirty.clear();
    return counters;
  }

  /** The store did not take them: they are to be written again. */
  stillDirty(counters: Iterable<KeyCounter>): void {
    for (const { key, month } of counters) {
      const count = this.#keys.get(key)?.months.get(month);
      if (count !== undefined) this.#dirty.add(count);
    }
  }

  /**
   * An owner's clock never runs backwards, but what was decided in a month may be acknowledged in the next: only what is
   * older counts no more. Each call looks at some of the keys, about every second.
   */
  forgetOld(now: number): void {
    const month = monthOf(now);
    if (month !== this.#sweptFor) this.#toSweep = this.#keys.entries();
    this.#sweptFor = month;
    const before = monthOf(monthStart(month) - 1);
    for (let looks = 0; looks < SWEPT_AT_ONCE && this.#toSweep !== undefined; looks++) {
      const { value, done } = this.#toSweep.next();
      if (done === true) {
        this.#toSweep = undefined;
        break;
      }
      const [key, count] = value;
      for (const [name, old] of count.months) if (name < before && !this.#dirty.has(old)) count.months.delete(name);
      if (count.months.size === 0 && activeOf(count) === 0) this.#keys.delete(key);
    }
  }

  /** The count of a month in which something of the run has changed. */
  #changed(run: LiveRun, at: number): MonthCount {
    const count = this.#monthOf(run.state, monthOf(at));
    this.#dirty.add(count);
    return count;
  }

  /** What the run's key has now has changed. */
  #changedNow(of: Keyed, at: number): KeyCount {
    const { of: count } = this.#monthOf(of, monthOf(at));
    const newest = count.months.get(count.newest);
    if (newest !== undefined) this.#dirty.add(newest);
    return count;
  }

  #monthOf({ tenant, key }: Keyed, month: string): MonthCount {
    let count = this.#keys.get(key);
    if (count === undefined)
      this.#keys.set(
        key,
        (count = { tenant, key, months: new Map(), newest: month, active: new Set(), parked: 0, maxConcurrent: null }),
      );
    if (month > count.newest) count.newest = month;
    let monthCount = count.months.get(month);
    if (monthCount === undefined)
      count.months.set(month, (monthCount = { of: count, month, decided: 0, runs: 0, stageMs: 0 }));
    return monthCount;
  }
}

function activeOf({ active, parked }: KeyCount): number {
  return active.size + parked;
}

function goesOn(run: LiveRun): boolean {
  return !run.state.held && run.state.rested !== true && !run.settled;
}

function assertCount({ key, months, newest, active }: KeyCount, living: ReadonlySet<LiveRun>): void {
  for (const { month, decided, runs } of months.values()) {
    const facts = (): Record<string, unknown> => ({ key, month, decided, runs, newest });
    invariant('COUNTS-1', runs <= decided, 'more runs are committed than were decided', facts);
    invariant('COUNTS-3', month <= newest, "a month is later than the key's latest", facts);
  }
  for (const run of active)
    invariant('COUNTS-4', living.has(run), 'a run that has left memory counts as active', () => ({ key, run: run.id }));
}

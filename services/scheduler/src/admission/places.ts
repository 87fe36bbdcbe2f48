/**
 * Which runs of a key may go on: the turns of its concurrency groups, and the places under its quota (P23).
 *
 *  L1 A run goes on when it is the first of its group and has one of the key's places. Both are its own until it has settled:
 *     ended, and its processes gone.
 *  L2 Runs whose turn has come get places in the order of their creation, which is that of their times and then their ids:
 *     the same to every owner. While one waits, no place is free.
 *  L3 A held run has no place, so what it waits for never waits for it.
 */
import { ConcurrencyGroups } from './groups.ts';
import type { LiveRun } from '../run/live-run.ts';

interface KeyPlaces {
  /** How many may have a place at a time; Infinity: any number. */
  limit: number;
  taken: number;
  /** In memory, ended ones included. */
  runs: number;
  held: number;
  /** The latest creation among the held ones since there were none. */
  newestHeldAt: number;
  /** Held, and the first of their groups: they wait for a place alone. In the order of their creation. */
  readonly ready: LiveRun[];
  admitting: boolean;
}

export interface PlacesHost {
  runOf(runId: string): LiveRun | undefined;
  /** The run has its turn and a place: it goes on. */
  admit(run: LiveRun): void;
}

export class Places {
  readonly #host: PlacesHost;
  readonly #groups = new ConcurrencyGroups();
  readonly #keys = new Map<string, KeyPlaces>();
  /** Not all runs are known yet: nobody is admitted before it is sure whose turn it is. */
  #restoring = false;

  constructor(host: PlacesHost) {
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
    const places = this.#keys.get(key);
    const last = group === undefined ? undefined : this.#host.runOf(this.#groups.last(key, group) ?? '');
    return Math.max(
      at,
      (last?.state.createdAt ?? 0) + 1,
      places === undefined || places.held === 0 ? 0 : places.newestHeldAt + 1,
    );
  }

  /** Of the key's newest run; where there are more places than before, those that wait go on. Infinity: any number. */
  setLimit(key: string, limit: number): void {
    const places = this.#placesOf(key);
    places.limit = limit;
    this.#admitReady(places);
  }

  /** Takes a new run in; answers what it waits for, if anything. */
  enter(run: LiveRun): 'group' | 'quota' | undefined {
    const { key, group } = run.state;
    const places = this.#placesOf(key);
    places.runs += 1;
    if (group !== undefined) this.#groups.enter(key, group, run.id);
    const isFirst = this.#isFirst(run);
    if (isFirst && places.taken < places.limit && places.ready.length === 0) {
      places.taken += 1;
      run.standing = 'placed';
      return undefined;
    }
    this.#hold(places, run);
    if (!isFirst) return 'group';
    insert(places.ready, run);
    return 'quota';
  }

  /** Takes a run in that has ended as it began: it waits for nothing and takes no place. */
  enterEnded(run: LiveRun): void {
    this.#placesOf(run.state.key).runs += 1;
  }

  // --- Take-over ---------------------------------------------------------------------------------------------------

  /** Takes over what an earlier owner left, in the order of creation. Nobody is admitted before `open`. */
  restore(runs: readonly LiveRun[], limitOf: (key: string) => number): void {
    this.#restoring = true;
    for (const run of runs) {
      const { key, group } = run.state;
      const places = this.#placesOf(key);
      places.limit = limitOf(key);
      places.runs += 1;
      if (run.settled) continue;
      if (group !== undefined) this.#groups.enter(key, group, run.id);
      if (run.state.held) this.#hold(places, run);
      else {
        places.taken += 1;
        run.standing = 'placed';
      }
    }
    for (const run of runs)
      if (run.standing === 'held' && this.#isFirst(run)) insert(this.#placesOf(run.state.key).ready, run);
  }

  /** The end of the run before may have been committed, and the owner gone before this one's turn was: they go on now. */
  open(): void {
    this.#restoring = false;
    for (const places of this.#keys.values()) this.#admitReady(places);
  }

  // --- Ends --------------------------------------------------------------------------------------------------------

  /** Frees what the run had: the next ones go on, in the same commit. */
  settled(run: LiveRun): void {
    const { key, group } = run.state;
    const places = this.#placesOf(key);
    if (run.standing === 'placed') places.taken -= 1;
    else if (run.standing === 'held') {
      places.held -= 1;
      remove(places.ready, run);
    }
    run.standing = 'none';
    const next = group === undefined ? undefined : this.#host.runOf(this.#groups.leave(key, group, run.id) ?? '');
    if (next?.standing === 'held') insert(places.ready, next);
    this.#admitReady(places);
  }

  /** The run leaves memory. */
  forget(run: LiveRun): void {
    const { key } = run.state;
    const places = this.#placesOf(key);
    places.runs -= 1;
    if (places.runs === 0) this.#keys.delete(key);
  }

  /** One after the other, however many end as soon as they go on: what settles meanwhile only frees its place. */
  #admitReady(places: KeyPlaces): void {
    if (this.#restoring || places.admitting) return;
    places.admitting = true;
    try {
      while (places.taken < places.limit) {
        const run = places.ready.shift();
        if (run === undefined) break;
        places.held -= 1;
        places.taken += 1;
        run.standing = 'placed';
        this.#host.admit(run);
      }
    } finally {
      places.admitting = false;
    }
  }

  #hold(places: KeyPlaces, run: LiveRun): void {
    places.newestHeldAt = places.held === 0 ? run.state.createdAt : Math.max(places.newestHeldAt, run.state.createdAt);
    places.held += 1;
    run.standing = 'held';
  }

  #isFirst({ id, state: { key, group } }: LiveRun): boolean {
    return group === undefined || this.#groups.isFirst(key, group, id);
  }

  #placesOf(key: string): KeyPlaces {
    let places = this.#keys.get(key);
    if (places === undefined) {
      places = {
        limit: Number.POSITIVE_INFINITY,
        taken: 0,
        runs: 0,
        held: 0,
        newestHeldAt: 0,
        ready: [],
        admitting: false,
      };
      this.#keys.set(key, places);
    }
    return places;
  }
}

export function byCreation(a: LiveRun, b: LiveRun): number {
  return a.state.createdAt - b.state.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Nearly always at the end; what is moved for an earlier place are a few kilobytes of pointers. */
function insert(runs: LiveRun[], run: LiveRun): void {
  const last = runs.at(-1);
  if (last === undefined || byCreation(last, run) < 0) runs.push(run);
  else runs.splice(placeOf(runs, run), 0, run);
}

function remove(runs: LiveRun[], run: LiveRun): void {
  const place = placeOf(runs, run);
  if (runs[place] === run) runs.splice(place, 1);
}

/** Where the run stands, or would. */
function placeOf(runs: readonly LiveRun[], run: LiveRun): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byCreation(runs[middle] as LiveRun, run) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

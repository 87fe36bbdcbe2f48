/**
 * Runs on their way out of memory and back (`Parking` says which, and when): what else of the partition has to hear of it. Owns who
 * waits for the checkpoint to pass its document, and who is to be cancelled as soon as it can be read, or as its turn comes.
 */
import { FairQueue } from '@penstock/async';
import type { RunId, Sequence } from '@penstock/run';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { AwakeRuns } from '../run/awake-runs.ts';
import type { Deadlines } from '../run/deadlines.ts';
import type { HeldBytes } from '../run/held-bytes.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { NewestRuns } from '../run/newest-runs.ts';
import { mayPark, parkedRunOf, type ParkedRun } from '../run/parked-run.ts';
import type { Parking } from './parking.ts';
import type { ProjectionBacklog } from './projection-backlog.ts';
import type { RunBorder } from './run-border.ts';
import type { RunPhases } from '../run/run-phases.ts';
import type { WideMap } from '../run/wide-map.ts';

/** Superseded runs that are asked for in one tick, key by key. */
const SUPERSEDED_AT_ONCE = 100;
/** And those that are cancelled with the run that supersedes them: 0.2 ms each. */
const CANCELLED_AT_ONCE = 40;

export interface OutsideRunsHost {
  readonly parking: Parking;
  readonly runs: WideMap<RunId, LiveRun>;
  readonly newest: NewestRuns;
  readonly held: HeldBytes;
  readonly phases: RunPhases;
  readonly awake: AwakeRuns;
  readonly slots: ConcurrencySlots;
  readonly counts: KeyCounts;
  readonly deadlines: Deadlines;
  readonly backlog: ProjectionBacklog;
  readonly border: RunBorder;
  bootNow(): number;
  /** Of one that repeats another: it has taken over what it takes. */
  forgetAdoption(run: LiveRun): void;
  offerWaiting(run: LiveRun): void;
  decide(run: LiveRun, command: 'admit' | 'cancel'): void;
  quarantine(run: LiveRun, cause: string): void;
}

export class OutsideRuns {
  readonly #host: OutsideRunsHost;
  /** Parked runs whose documents are written, and wait for the checkpoint to pass them. */
  readonly #leaving = new Set<LiveRun>();
  /** Those outside, and of which of them it is the turn to be asked for. */
  readonly #superseded = new Set<RunId>();
  #toAsk = new FairQueue<RunId>(Infinity, Infinity);
  /** And those in memory that are still to be cancelled. */
  readonly #toCancel = new Set<LiveRun>();
  /** Whose turn it is among these; some may have left. */
  #cancelTurns = new FairQueue<LiveRun>(Infinity, Infinity);

  constructor(host: OutsideRunsHost) {
    this.#host = host;
  }

  /** These runs' documents are written, and the checkpoint stands at `sequence`; `closed` have left memory for good. */
  projected(sequence: Sequence, runs: Iterable<LiveRun>, closed: readonly LiveRun[]): void {
    const { parking, backlog } = this.#host;
    if (parking.size === 0) return;
    for (const run of runs) if (parking.has(run.id)) this.#leaving.add(run);
    for (const run of this.#leaving) if (backlog.isDirty(run) || run.committedSequence <= sequence) this.#leave(run);
    for (const run of closed) {
      parking.forget(run.id);
      parking.freed(run.state.key);
    }
    parking.fill();
  }

  /** Its document is written and stands behind the checkpoint; unless more has happened to it since. */
  #leave(run: LiveRun): void {
    const { parking, runs, newest, held, phases, awake, slots, counts, backlog } = this.#host;
    this.#leaving.delete(run);
    if (runs.get(run.id) !== run || !parking.has(run.id) || backlog.isDirty(run) || !run.isCommitted) return;
    const dueAt = run.state.held ? Number.POSITIVE_INFINITY : run.times.next(run.state);
    if (dueAt === undefined || !mayPark(run)) {
      // It has ended, or waits for people too: it stays, and is offered as others are.
      parking.forget(run.id);
      this.unparked(run.id);
      return;
    }
    const parked = parkedRunOf(run, { dueAt, bytes: held.ofRun(run) });
    runs.delete(run.id);
    held.delete(run);
    phases.delete(run);
    awake.delete(run);
    slots.park(run);
    counts.park(run);
    this.#host.forgetAdoption(run);
    parking.left(parked);
    if (this.#toCancel.delete(run)) this.#addOutside(run.id, run.state.key);
    newest.set(parked.tenant, parked);
  }

  /** It has not left: its stages are offered as they would have been. */
  unparked(runId: RunId): void {
    const { runs, border, offerWaiting } = this.#host;
    const run = runs.get(runId);
    if (run === undefined || run.ended) return;
    border.run(run, () => offerWaiting(run));
  }

  /** It is back, as it was when it left. */
  enter(run: LiveRun, parked: ParkedRun): void {
    const { runs, newest, held, phases, slots, counts, border, quarantine } = this.#host;
    runs.set(run.id, run);
    newest.set(run.state.tenant, run);
    held.add(run);
    phases.set(run);
    slots.unpark(run);
    counts.unpark(run, parked.held);
    border.run(run, () => {
      if (run.restoreError === undefined) this.#goOnWith(run, parked);
      else quarantine(run, run.restoreError);
    });
  }

  #goOnWith(run: LiveRun, { dueAt, held }: ParkedRun): void {
    const { slots, deadlines, bootNow, offerWaiting, decide } = this.#host;
    if (!held) {
      run.times.restoreQueued(run.state, dueAt);
      deadlines.arm(run, bootNow());
    }
    if (this.#superseded.delete(run.id)) decide(run, 'cancel');
    else if (!held) offerWaiting(run);
    // Its turn came while it was outside.
    else if (slots.has(run)) decide(run, 'admit');
  }

  /** Its turn has come. What could not be restored has not its own stages, and must not go on without them. */
  admit(runId: RunId): void {
    const { runs, parking, decide, quarantine } = this.#host;
    const run = runs.get(runId);
    if (run === undefined) {
      parking.admitted(runId);
      return;
    }
    if (run.restoreError !== undefined) {
      quarantine(run, run.restoreError);
      return;
    }
    parking.forget(runId);
    if (this.#toCancel.delete(run)) {
      decide(run, 'cancel');
      return;
    }
    if (mayPark(run) && parking.isWanted(run.state.key, false)) parking.park(run, false);
    decide(run, 'admit');
  }

  /**
   * A newer run of their group takes their place: they are cancelled, in memory at once unless they are very many, else when they are
   * back. The last first, so that none has its turn on the way.
   */
  supersede(runIds: readonly RunId[]): void {
    const { runs, parking } = this.#host;
    const inMemory: LiveRun[] = [];
    for (const runId of runIds.toReversed()) {
      const run = runs.get(runId);
      if (run !== undefined) inMemory.push(run);
      else this.#addOutside(runId, parking.find(runId)?.key);
    }
    let left = CANCELLED_AT_ONCE;
    for (const run of inMemory) {
      if (run.ended) continue;
      if ((left -= 1) < 0) this.#cancelLater(run);
      else this.#host.decide(run, 'cancel');
    }
  }

  #cancelLater(run: LiveRun): void {
    if (this.#toCancel.has(run)) return;
    this.#toCancel.add(run);
    this.#cancelTurns.add(run.state.key, run);
  }

  #addOutside(runId: RunId, key: string | undefined): void {
    if (key === undefined || this.#superseded.has(runId)) return;
    this.#superseded.add(runId);
    this.#toAsk.add(key, runId);
  }

  /** Superseded runs are to be cancelled. */
  get isBusy(): boolean {
    return this.#toCancel.size > 0;
  }

  /** The next ones, key by key, at most so many; how many there were. */
  goOn(max: number): number {
    const { runs, decide } = this.#host;
    let count = 0;
    while (count < max) {
      const run = this.#cancelTurns.next();
      if (run === undefined) break;
      if (!this.#toCancel.delete(run) || run.ended || runs.get(run.id) !== run) continue;
      count += 1;
      decide(run, 'cancel');
    }
    return count;
  }

  /** About every second. */
  tick(): void {
    const { parking } = this.#host;
    for (let left = SUPERSEDED_AT_ONCE; left > 0; left -= 1) {
      const runId = this.#toAsk.next();
      if (runId === undefined) return;
      const parked = parking.find(runId);
      if (parked === undefined) this.#superseded.delete(runId);
      else
        parking.bringBack(runId, (isThere) => {
          if (!isThere && this.#superseded.has(runId)) this.#toAsk.add(parked.key, runId);
        });
    }
  }

  clear(): void {
    this.#leaving.clear();
    this.#superseded.clear();
    this.#toAsk = new FairQueue(Infinity, Infinity);
    this.#toCancel.clear();
    this.#cancelTurns = new FairQueue(Infinity, Infinity);
  }
}

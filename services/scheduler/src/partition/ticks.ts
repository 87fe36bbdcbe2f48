/**
 * Fires the ticks of a partition's schedules (P28). It owns when each line is looked at next, by the wall clock, and which ticks are
 * on their way: looked up in the store, or their text being read.
 *
 *  TICKS-1 A tick becomes one run: its id follows from it, and is looked up in memory and in the store at any age first.
 *  TICKS-2 The run's creation and the line's last fired tick stand in one commit.
 *  TICKS-3 Nothing is fired by an owner that is not sure to be it (P4). What cannot be fired now is tried again; by then a newer
 *     tick may be due, and this one counts as missed.
 *  TICKS-4 At most TICKS_AT_ONCE are on their way, a quarter of them of one key, and few are begun in one turn: a text may be a hundred times as long
 *     as it is packed.
 *  TICKS-5 What throws about one tick costs no other, and is tried again like what finds no room.
 */
import { Counts } from '@penstock/async';
import type { CreateRequest } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { dueTick, nextLook, type DueTick, type LineState, type RunId, type ScheduleState } from '@penstock/run';
import { BadPipeline, type DefinitionSource } from '../run/definitions.ts';
import { Heap } from '../run/heap.ts';
import { unpackText, type LiveSchedule } from '../run/live-schedule.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { tickRunId } from '../run/schedule-ids.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { MonthUsedUp } from './new-run.ts';
import type { RunCreation } from './run-creation.ts';

const TICKS_AT_ONCE = 256;
const TICKS_OF_KEY_AT_ONCE = TICKS_AT_ONCE / 4;
/** Of the longest texts they take 25 ms. */
const BEGUN_AT_ONCE = 32;
/** Lines whose key has all it may have are looked at again after that, and so many of them in one turn. */
const FULL_MS = 1_000;
const LOOKED_AT_ONCE = 1_000;
/** Looks that stand for no line, beyond as many as there are lines. */
const LEFT_OVER_MAX = 256;
/** A tenth of the time for which it could not be fired: a key may have thousands of lines, and no room for a run. */
const RETRY = { minMs: 5_000, maxMs: 60_000, share: 1 / 10 };

export interface TicksHost {
  readonly ports: Pick<PartitionPorts, 'now' | 'storedRuns' | 'warn'>;
  readonly cycle: Pick<CommitCycle, 'addSchedule'>;
  readonly creation: Pick<RunCreation, 'createOwn'>;
  /** Whether a run of this id is in memory, outside, or was until a moment ago. */
  isKnown(runId: RunId): boolean;
  /** Reads a request's text where it holds up nobody. Answers as the ports do, or at once. */
  readText(request: CreateRequest, then: (source: DefinitionSource) => void): void;
  /** Whether the partition still decides, and is sure to be the owner. */
  mayFire(): boolean;
  advance(): void;
}

interface Look {
  readonly at: number;
  readonly schedule: LiveSchedule;
  readonly line: string;
}

interface Due extends DueTick {
  readonly schedule: LiveSchedule;
  readonly state: ScheduleState;
  readonly line: LineState;
  readonly runId: RunId;
}

export class Ticks {
  readonly #host: TicksHost;
  #looks = new Heap<Look>(isEarlier);
  /** The look that stands for each line; others are left over. */
  readonly #standing = new Map<string, Look>();
  readonly #underWay = new Set<string>();
  /** Of those, by key. */
  readonly #ofKey = new Counts();
  #latest = Number.NEGATIVE_INFINITY;

  constructor(host: TicksHost) {
    this.#host = host;
  }

  /** There is something to fire at once. */
  get isBusy(): boolean {
    const first = this.#looks.peek();
    if (first === undefined || this.#underWay.size >= TICKS_AT_ONCE) return false;
    return first.at <= this.#host.ports.now() && this.#host.mayFire();
  }

  clear(): void {
    this.#looks = new Heap(isEarlier);
    this.#standing.clear();
    this.#underWay.clear();
    this.#ofKey.clear();
  }

  /** Its lines may have changed, or it is new. */
  changed(schedule: LiveSchedule, before: ScheduleState | undefined): void {
    const lines = schedule.state?.lines ?? [];
    for (const { id } of before?.lines ?? []) if (!lines.some((line) => line.id === id)) this.#standing.delete(id);
    for (const { id } of lines) this.#lookAt(schedule, id, Number.NEGATIVE_INFINITY);
  }

  /** About every second. */
  tick(): void {
    const { ports, mayFire } = this.#host;
    if (!mayFire()) return;
    const now = ports.now();
    // Set back: what lies ahead now says nothing, and what is due is found anew.
    if (now < this.#latest)
      for (const { schedule, line } of [...this.#standing.values()]) this.#lookAt(schedule, line, now);
    this.#latest = now;
    const due: Due[] = [];
    let looked = 0;
    for (let first = this.#looks.peek(); first !== undefined && first.at <= now; first = this.#looks.peek()) {
      if (this.#underWay.size >= TICKS_AT_ONCE || due.length >= BEGUN_AT_ONCE || looked >= LOOKED_AT_ONCE) break;
      looked += 1;
      this.#looks.pop();
      if (this.#standing.get(first.line) !== first) continue;
      this.#standing.delete(first.line);
      // Its schedule has changed meanwhile: it is looked at when that is over.
      if (this.#underWay.has(first.line)) continue;
      if (this.#ofKey.of(first.schedule.state?.key ?? '') >= TICKS_OF_KEY_AT_ONCE) {
        this.#lookAt(first.schedule, first.line, now + FULL_MS);
        continue;
      }
      const found = this.#dueOrTold(first, now);
      if (found === undefined) continue;
      this.#underWay.add(first.line);
      this.#ofKey.add(found.state.key, 1);
      due.push(found);
    }
    if (due.length > 0) this.#lookUp(due);
  }

  /** Keeps TICKS-5 where the line itself is not understood, as one that a later release has taken. */
  #dueOrTold({ schedule, line }: Look, now: number): Due | undefined {
    try {
      return this.#dueOf(schedule, line, now);
    } catch (error) {
      this.#host.ports.warn(
        { err: error, schedule: schedule.id, line },
        'a line of a schedule is not understood; it is looked at again',
      );
      this.#lookAt(schedule, line, now + RETRY.maxMs);
      return undefined;
    }
  }

  /** Undefined: nothing is due; it is looked at again when something is. */
  #dueOf(schedule: LiveSchedule, id: string, now: number): Due | undefined {
    const { state } = schedule;
    const line = state?.lines.find((each) => each.id === id);
    if (state === undefined || line === undefined) return undefined;
    const due = dueTick(line, now);
    if (due !== undefined) return { ...due, schedule, state, line, runId: tickRunId(state, line, due.tick) };
    const next = nextLook(line, now);
    if (next !== undefined) this.#lookAt(schedule, id, next);
    return undefined;
  }

  #lookAt(schedule: LiveSchedule, line: string, at: number): void {
    const look = { at, schedule, line };
    this.#standing.set(line, look);
    this.#looks.push(look);
    if (this.#looks.size > 2 * this.#standing.size + LEFT_OVER_MAX) this.#tidy();
  }

  /** Each push and each pause leaves the look that stood before, which may be a year ahead. */
  #tidy(): void {
    this.#looks = new Heap(isEarlier);
    for (const look of this.#standing.values()) this.#looks.push(look);
  }

  /** Keeps TICKS-1. */
  #lookUp(due: readonly Due[]): void {
    const { ports, isKnown, advance } = this.#host;
    const unknown = due.filter(({ runId }) => !isKnown(runId));
    for (const each of due) if (!unknown.includes(each)) this.#settle(each, () => this.#record(each));
    if (unknown.length < due.length) advance();
    if (unknown.length === 0) return;
    ports.storedRuns(
      unknown.map(({ runId }) => runId),
      (stored) => {
        for (const each of unknown)
          if (stored === 'unavailable') this.#again(each);
          else if (stored.has(each.runId) || isKnown(each.runId)) this.#settle(each, () => this.#record(each));
          else this.#read(each);
        advance();
      },
    );
  }

  #read(due: Due): void {
    this.#guarded(due, () => {
      const request = requestOf(due);
      this.#host.readText(request, (source) => {
        this.#settle(due, () => this.#fire(due, request, source));
        this.#host.advance();
      });
    });
  }

  /** Keeps TICKS-5. */
  #guarded(due: Due, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#host.ports.warn(
        { err: error, runId: due.runId },
        'a tick of a schedule cannot be fired; it is tried again',
      );
      this.#again(due);
    }
  }

  /** What is done now must still be so: the clock, the schedule and the owner may be others than when it was asked. */
  #settle(due: Due, act: () => boolean): void {
    this.#guarded(due, () => this.#settled(due, act));
  }

  #settled(due: Due, act: () => boolean): void {
    const { line, schedule, tick } = due;
    const { ports, mayFire } = this.#host;
    if (!this.#underWay.has(line.id)) return;
    const now = ports.now();
    const present = schedule.state?.lines.find(({ id }) => id === line.id);
    const stands =
      mayFire() && schedule.state?.delivery.sequence === due.state.delivery.sequence && present !== undefined;
    if (stands && dueTick(present, now)?.tick === tick && !act()) {
      this.#again(due);
      return;
    }
    this.#over(due);
    if (present !== undefined) this.#lookAt(schedule, line.id, now);
  }

  #again(due: Due): void {
    const { schedule, line, tick } = due;
    if (!this.#over(due)) return;
    const now = this.#host.ports.now();
    const { minMs, maxMs, share } = RETRY;
    this.#lookAt(schedule, line.id, now + Math.min(maxMs, Math.max(minMs, (now - tick) * share)));
  }

  /** False: it was given up before. */
  #over({ line, state }: Due): boolean {
    const isUnderWay = this.#underWay.delete(line.id);
    if (isUnderWay) this.#ofKey.add(state.key, -1);
    return isUnderWay;
  }

  /** It was fired before, by whoever owned the partition then. */
  #record({ schedule, line, tick, runId }: Due): true {
    this.#host.cycle.addSchedule(schedule, {
      type: 'tick_fired',
      at: this.#host.ports.now(),
      line: line.id,
      tick,
      runId,
    });
    return true;
  }

  /** Keeps TICKS-2. False: not now. */
  #fire(due: Due, request: CreateRequest, source: DefinitionSource): boolean {
    const run = this.#create(request, source);
    if (run === undefined) return false;
    const { schedule, line, tick, runId } = due;
    const fired = { type: 'tick_fired', at: run.state.createdAt, line: line.id, tick, runId } as const;
    this.#host.cycle.addSchedule(schedule, fired, run);
    return true;
  }

  /** What can never run is a run all the same: it has failed, and says so. */
  #create(request: CreateRequest, source: DefinitionSource): LiveRun | undefined {
    try {
      return this.#host.creation.createOwn(request, source);
    } catch (error) {
      if (error instanceof Unavailable) return undefined;
      const reason = reasonOf(error);
      if (reason === request.ended?.reason || (reason === 'quarantined' && request.ended !== undefined)) throw error;
      if (reason === 'quarantined') this.#host.ports.warn({ err: error, runId: request.runId }, 'a run cannot be made');
      const { yaml: _, extensions: _extensions, inputs: _inputs, ...rest } = request;
      const pipelineName = request.ended?.pipelineName ?? nameOf(request, source);
      return this.#create({ ...rest, yaml: '', ended: { pipelineName, status: 'FAILED', reason } }, source);
    }
  }
}

function reasonOf(error: unknown): 'pipeline_file' | 'quota' | 'quarantined' {
  if (error instanceof BadPipeline) return 'pipeline_file';
  return error instanceof MonthUsedUp ? 'quota' : 'quarantined';
}

function isEarlier(a: Look, b: Look): boolean {
  return a.at < b.at;
}

function requestOf({ state, line, tick, missed, runId }: Due): CreateRequest {
  const { tenant, key, provider, repository, ref, commit, cloneUrl, source, defaultBranch, limits } = state;
  return {
    runId,
    tenant,
    key,
    ...unpackText(state.text),
    ...(line.inputs === undefined ? {} : { inputs: Object.entries(line.inputs) }),
    ...(limits === undefined ? {} : { limits }),
    origin: {
      kind: 'schedule',
      provider,
      repository,
      ref,
      commit,
      source,
      trusted: true,
      tick: { cron: line.cron, at: tick, missed },
      cloneUrl,
      ...(defaultBranch === undefined ? {} : { defaultBranch }),
    },
  };
}

function nameOf({ yaml, extensions, origin }: CreateRequest, source: DefinitionSource): string {
  try {
    return source.find(yaml, extensions).definition.name;
  } catch {
    return origin.repository ?? '';
  }
}

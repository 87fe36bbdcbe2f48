/**
 * What must hold of the quotas of keys (P23), derived from the log alone: how many runs have a concurrency slot, who waits for one, and
 * which of its month each run is.
 */
import { attemptMs, isSettled, monthCountOf, monthOf, type RunEvent } from '@penstock/run';
import type { RunCounter } from '@penstock/store';
import type { Limits } from '../nodes/clients.ts';
import type { RunTruth } from './run-truth.ts';
import type { World } from '../world/world.ts';

interface KeyTruth {
  readonly partition: number;
  /** In the order in which their turns count. */
  readonly runs: Set<RunTruth>;
  /** Those of which only gates are open: they have their turns, and no slots. */
  readonly resting: Set<RunTruth>;
  /** Runs that count and time of attempts, by month. */
  readonly months: Map<string, { runs: number; stageMs: number }>;
  /** Runs that count, each with its month, in the order of the log. */
  readonly counted: { readonly run: RunTruth; readonly month: string; readonly version: number }[];
  /** Of the newest run. */
  maxConcurrent: number;
}

/** What a commit did to a key. */
interface Step {
  /** The most slots that there were at any time in it. */
  slotsMax: number;
  readonly granted: Set<RunTruth>;
  /** Runs whose place is behind all that were there before this commit. */
  readonly placed: Set<RunTruth>;
  /** Groups whose turn a resting run has given back in this commit: with it no slot, which others may have got before. */
  readonly freed: Set<string>;
  /** Runs that have rested and wait for a slot since this commit: others may have got theirs in it before. */
  readonly waitsAgain: Set<RunTruth>;
  /** Runs that count since this commit, by what their owner says of their place in the month. */
  readonly counted: { readonly run: RunTruth; readonly month: string; readonly runOfMonth: number }[];
}

export class QuotaRules {
  readonly #world: World;
  readonly #keys = new Map<string, KeyTruth>();
  #steps = new Map<KeyTruth, Step>();

  constructor(world: World) {
    this.#world = world;
  }

  /** An event that a commit has brought; the run's state has it already. */
  happened(run: RunTruth, event: RunEvent, limits: Limits | undefined, disturbed: boolean): void {
    const key = this.#keyOf(run);
    const step = this.#stepOf(key);
    if (event.type === 'run_created') {
      key.runs.add(run);
      step.placed.add(run);
      const maxConcurrent = limits?.maxConcurrent ?? Number.POSITIVE_INFINITY;
      this.#world.check(
        (event.maxConcurrent ?? Number.POSITIVE_INFINITY) === maxConcurrent,
        'P23',
        `run ${run.id} is created with ${event.maxConcurrent ?? 'no limit of'} slots, asked for were ${maxConcurrent}`,
      );
      key.maxConcurrent = maxConcurrent;
      step.slotsMax = Math.max(step.slotsMax, maxConcurrent);
      if (event.held === undefined) step.granted.add(run);
    }
    const [created] = run.events;
    const runOfMonth = monthCountOf(event);
    const limit = event.type === 'run_created' ? limits?.pipelineRunLimit : limitOf(created);
    if (runOfMonth !== undefined) {
      const month = monthOf(event.at);
      this.#monthOf(key, event.at).runs += 1;
      key.counted.push({ run, month, version: run.events.length });
      step.counted.push({ run, month, runOfMonth });
      this.#world.check(
        disturbed || runOfMonth <= (limit ?? Number.POSITIVE_INFINITY),
        'P23',
        `run ${run.id} is the ${runOfMonth}. of its month, ${limit ?? 0} are allowed`,
      );
    }
    if (event.type === 'run_approved') {
      step.placed.add(run);
      step.granted.add(run);
    }
    if (event.type === 'run_held') {
      step.granted.delete(run);
      if (run.events.some(({ type }) => type === 'run_rested')) step.waitsAgain.add(run);
      this.#world.mark(event.reason === 'quota' ? 'run held by its quota' : 'run held by its group');
    }
    if (event.type === 'run_rested') {
      step.granted.delete(run);
      key.resting.add(run);
    } else if (isSettled(run.state)) {
      const hasRested = key.resting.delete(run) || step.waitsAgain.has(run);
      if (hasRested && run.state.group !== undefined) step.freed.add(run.state.group);
    } else if (run.state.rested !== true) key.resting.delete(run);
    if (event.type === 'run_admitted') step.granted.add(run);
    const ms = attemptMs(run.events, run.events.length - 1);
    if (ms !== undefined) this.#monthOf(key, event.at).stageMs += ms;
  }

  /** A commit has the events of each run together: one that was created in it, and approved after others were, stands before them. */
  #checkCounts(key: KeyTruth, { counted }: Step): void {
    for (const [month, ofMonth] of Map.groupBy(counted, (one) => one.month)) {
      const first = (key.months.get(month)?.runs ?? 0) - ofMonth.length + 1;
      for (const [index, { run, runOfMonth }] of ofMonth.toSorted((a, b) => a.runOfMonth - b.runOfMonth).entries())
        this.#world.check(
          runOfMonth === first + index,
          'P23',
          `run ${run.id} is the ${runOfMonth}. of its month by its owner, the ${first + index}. by the log`,
        );
    }
  }

  /** The commit is at its end, which is one step in whatever order its runs stand in it. */
  checkStep(isFirstOfGroup: (run: RunTruth) => boolean, disturbed: boolean): void {
    const steps = this.#steps;
    this.#steps = new Map();
    if (disturbed) return;
    // One that waits outside of memory has its slot when its turn comes, and goes on when it has been read.
    const mayWaitOutside = this.#world.profile.liveBytesMax > 0;
    for (const [key, step] of steps) {
      const { slotsMax, granted, waitsAgain, freed } = step;
      this.#checkCounts(key, step);
      for (const run of [...step.placed].sort(byTurn)) {
        key.runs.delete(run);
        key.runs.add(run);
      }
      const live = [...key.runs].filter(({ state }) => !isSettled(state));
      const active = live.filter(({ state }) => !state.held && state.rested !== true);
      const ready = live.filter((run) => run.state.held && run.state.awaitsApproval !== true && isFirstOfGroup(run));
      const starts = active.filter((run) => granted.has(run));
      if (starts.length > 0) {
        this.#world.check(
          active.length <= slotsMax,
          'P23',
          `${active.length} runs of ${active[0]?.state.key ?? ''} go on at once, ${slotsMax} are allowed`,
        );
        // The runs of a key stand in the order of their creation in the log; clocks may have been set back between two.
        // Slots that were taken away in the same step may have been what a later run got before a turn came.
        const overtaken =
          slotsMax > key.maxConcurrent || mayWaitOutside
            ? undefined
            : ready.find(
                (waiting) =>
                  !waitsAgain.has(waiting) &&
                  !freed.has(waiting.state.group ?? '') &&
                  starts.some((run) => live.indexOf(waiting) < live.indexOf(run)),
              );
        this.#world.check(
          overtaken === undefined,
          'P23',
          `run ${starts[0]?.id ?? ''} goes on before run ${overtaken?.id ?? ''}, which has waited for longer`,
        );
      }
      this.#world.check(
        ready.length === 0 || active.length >= key.maxConcurrent || mayWaitOutside,
        'P23',
        `run ${ready[0]?.id ?? ''} is held, although ${active.length} of ${key.maxConcurrent} slots are taken`,
      );
    }
  }

  forgotten(run: RunTruth): void {
    const key = this.#keys.get(run.state.key);
    key?.runs.delete(run);
    key?.resting.delete(run);
  }

  /** A checkpoint is written: the counters stand for all that it covers. */
  checkpointed(partition: number, sequence: number, counters: ReadonlyMap<string, RunCounter>): void {
    for (const [name, key] of this.#keys) {
      if (key.partition !== partition) continue;
      for (const month of key.months.keys()) {
        const covered = key.counted.filter(
          (one) =>
            one.month === month &&
            (one.run.versions.find(({ version }) => version >= one.version)?.sequence ?? sequence) <= sequence,
        ).length;
        const stored = counters.get(`${name} ${month}`)?.runs ?? 0;
        this.#world.check(
          stored >= covered,
          'P23',
          `the checkpoint of partition ${partition} at ${sequence} covers ${covered} runs of ${name} in ${month}, stored are ${stored}`,
        );
      }
    }
  }

  runsOfMonth(name: string, isDisturbed: (partition: number) => boolean): number | undefined {
    const key = this.#keys.get(name);
    return key === undefined || isDisturbed(key.partition)
      ? undefined
      : Math.max(0, ...[...key.months.values()].map(({ runs }) => runs));
  }

  /** What the store does not say yet of what keys have used; undefined: nothing. */
  missing(counters: ReadonlyMap<string, RunCounter>, isDisturbed: (partition: number) => boolean): string | undefined {
    for (const [name, key] of this.#keys) {
      if (isDisturbed(key.partition)) continue;
      for (const [month, { runs, stageMs }] of key.months) {
        const counter = counters.get(`${name} ${month}`);
        if (counter?.runs !== runs || counter.stageMs !== stageMs)
          return `${name} has ${runs} runs and ${stageMs} ms in ${month}, the store says ${JSON.stringify(counter)}`;
      }
      // What a key has now is said by the counter of its newest month.
      const newest = [...counters.values()]
        .filter((counter) => counter.key === name)
        .toSorted((a, b) => (a.month < b.month ? 1 : -1))[0];
      if ((newest?.maxConcurrent ?? Number.POSITIVE_INFINITY) !== key.maxConcurrent || newest?.active !== 0)
        return `${name} has ${key.maxConcurrent} slots and none taken, the store says ${JSON.stringify(newest)}`;
    }
    return undefined;
  }

  #keyOf(run: RunTruth): KeyTruth {
    let key = this.#keys.get(run.state.key);
    if (key === undefined)
      this.#keys.set(
        run.state.key,
        (key = {
          partition: run.partition,
          runs: new Set(),
          resting: new Set(),
          months: new Map(),
          counted: [],
          maxConcurrent: Number.POSITIVE_INFINITY,
        }),
      );
    return key;
  }

  #stepOf(key: KeyTruth): Step {
    let step = this.#steps.get(key);
    if (step === undefined)
      this.#steps.set(
        key,
        (step = {
          slotsMax: key.maxConcurrent,
          granted: new Set(),
          placed: new Set(),
          freed: new Set(),
          waitsAgain: new Set(),
          counted: [],
        }),
      );
    return step;
  }

  #monthOf(key: KeyTruth, at: number): { runs: number; stageMs: number } {
    const month = monthOf(at);
    let count = key.months.get(month);
    if (count === undefined) key.months.set(month, (count = { runs: 0, stageMs: 0 }));
    return count;
  }
}

/**
 * A commit has its runs in the order in which it first heard of them, which is not that of their turns. Of one time are only those of
 * which the first had no need to wait.
 */
export function byTurn({ state: one }: RunTruth, { state: other }: RunTruth): number {
  return (one.approvedAt ?? one.createdAt) - (other.approvedAt ?? other.createdAt);
}

/** Of a held run: how many its key may have in a month. */
function limitOf(created: RunEvent | undefined): number | undefined {
  return created?.type === 'run_created' ? created.pipelineRunLimit : undefined;
}

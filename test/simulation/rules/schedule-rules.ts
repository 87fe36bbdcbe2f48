/** What must hold of schedules and their ticks (P28), derived from the log alone. */
import { cronOf, ticksBetween } from '@penstock/pipeline';
import { evolveSchedule, newSchedule, type RunEvent, type ScheduleEvent, type ScheduleState } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import type { SimStore } from '../world/store.ts';
import type { World } from '../world/world.ts';

interface Truth {
  readonly partition: number;
  /** After each commit about it. */
  readonly states: { readonly sequence: number; readonly state: ScheduleState }[];
}

type Created = Extract<RunEvent, { type: 'run_created' }>;

export class ScheduleRules {
  readonly #world: World;
  readonly #schedules = new Map<string, Truth>();
  /** Runs by the tick that they are for. */
  readonly #fired = new Map<string, string>();
  /** Lines that somebody has paused, whatever files came since. */
  readonly #paused = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A commit is one step. */
  committed(partition: number, commit: Commit, sequence: number, disturbed: boolean): void {
    const created = new Map<string, Created>();
    for (const { id, events } of commit.runs)
      for (const event of events)
        if (event.type === 'run_created' && event.origin.tick !== undefined) created.set(id, event);
    for (const { id, events } of commit.schedules ?? []) {
      const truth = this.#schedules.get(id) ?? { partition, states: [] };
      this.#schedules.set(id, truth);
      let state = truth.states.at(-1)?.state;
      for (const event of events) {
        if (!disturbed) this.#check(state, event, created);
        if (event.type === 'line_paused') this.#paused.add(event.line);
        if (event.type === 'line_resumed') this.#paused.delete(event.line);
        if (event.type === 'tick_fired') created.delete(event.runId);
        if (state !== undefined) state = evolveSchedule(state, event);
        else if (event.type === 'schedule_set') state = newSchedule(id, event);
      }
      if (state !== undefined) truth.states.push({ sequence, state });
    }
    const [left] = created.keys();
    this.#world.check(disturbed || left === undefined, 'P28', `the commit of run ${left} says nothing of its tick`);
  }

  /** Everything up to the checkpoint is in documents. */
  checkpointed(partition: number, sequence: number, { schedules }: SimStore): void {
    for (const [id, { states, partition: of }] of this.#schedules) {
      if (of !== partition) continue;
      const covered = states.findLast((each) => each.sequence <= sequence);
      const stored = schedules.get(id)?.sequence ?? 0;
      this.#world.check(
        covered === undefined || stored >= covered.sequence,
        'P6',
        `the checkpoint of partition ${partition} at ${sequence} covers schedule ${id}, stored as of ${stored}`,
      );
    }
  }

  #check(state: ScheduleState | undefined, event: ScheduleEvent, created: ReadonlyMap<string, Created>): void {
    const world = this.#world;
    const fail = (holds: boolean, message: string): void => world.check(holds, 'P28', message);
    if (event.type === 'schedule_set') {
      const known = state?.delivery.sequence ?? 0;
      fail(event.delivery.sequence > known, `delivery ${event.delivery.sequence} is taken behind ${known}`);
      return;
    }
    const line = state?.lines.find(({ id }) => id === event.line);
    fail(line !== undefined, `${event.type} of a line that the newest file has not`);
    if (state === undefined || line === undefined || event.type !== 'tick_fired') return;
    const { tick, runId } = event;
    const name = `${state.id} ${line.id} ${tick}`;
    const before = this.#fired.get(name);
    const run = created.get(runId);
    fail(!this.#paused.has(line.id), `a line that is paused is fired at ${tick}`);
    fail(tick >= line.from, `a tick of ${tick} is fired, its delivery was stored at ${line.from}`);
    world.mark(run === undefined ? 'tick found fired' : 'tick fired');
    if (run === undefined) {
      fail(before === runId, `the tick ${tick} counts as fired, and has no run`);
      return;
    }
    fail(before === undefined, `the tick ${tick} is fired twice: ${before} and ${runId}`);
    this.#fired.set(name, runId);
    fail(run.origin.commit === state.commit, `a tick runs commit ${run.origin.commit}, the newest is ${state.commit}`);
    const toldTo = Math.max(line.from - 1, line.toldTo ?? 0);
    const missed = tick <= toldTo ? 0 : ticksBetween(cronOf(line.cron), toldTo, tick);
    fail(run.origin.tick?.missed === missed, `${run.origin.tick?.missed} ticks are said to be missed, ${missed} were`);
    if (missed > 0) world.mark('tick fired for others');
    if (tick > world.wallClock() + 1_000) world.mark('tick fired by a clock that is ahead');
  }
}

/**
 * P28 over random crashes, clock steps of an hour both ways, take-overs in the middle of a tick, pauses and files: what the log
 * says in the end is held against the lines' own ticks.
 */
import { deepEqual } from 'node:assert';
import type { SetScheduleRequest } from '@penstock/bus';
import { cronOf, newestTick, ticksBetween } from '@penstock/pipeline';
import { newSchedule, evolveSchedule, type ScheduleState } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const MINUTE_MS = 60_000;
const CRONS = ['*/10 * * * *', '0 * * * *', '*/7 8-11 * * *'];

type Step =
  | { readonly kind: 'pass'; readonly minutes: number }
  | { readonly kind: 'clock'; readonly hours: 1 | -1 }
  | { readonly kind: 'set'; readonly lines: readonly number[] }
  | { readonly kind: 'pause' | 'project' }
  /** `stored`: the commit that was under way is in the log all the same. */
  | { readonly kind: 'crash'; readonly stored: boolean }
  /** A tick is looked up, and the owner is gone before it hears the answer. */
  | { readonly kind: 'crash-in-tick'; readonly stored: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 90 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('clock' as const), hours: fc.constantFrom(1 as const, -1 as const) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('set' as const), lines: fc.subarray([0, 1, 2]) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'project' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), stored: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash-in-tick' as const), stored: fc.boolean() }) },
);

/** A repository's schedule under owners that come and go. The log, the store and the true time outlive them. */
class Life {
  owner = new Harness();
  readonly log: Commit[] = [];
  readonly stored = new Set<string>();
  trueNow = NOW;
  #sequence = 0;
  #taken = 0;

  do(step: Step): void {
    switch (step.kind) {
      case 'pass':
        for (let minute = 0; minute < step.minutes; minute += 1) this.#pass();
        return;
      case 'clock':
        this.owner.now += step.hours * HOUR_MS;
        return;
      case 'set':
        this.#set(step.lines);
        return;
      case 'pause':
        this.#pause();
        return;
      case 'project':
        this.owner.project();
        return;
      case 'crash':
        this.owner.later(MINUTE_MS);
        this.#crash(step.stored);
        return;
      case 'crash-in-tick':
        this.owner.answersStoreLater = true;
        this.owner.later(10 * MINUTE_MS);
        if (step.stored) for (const answer of this.owner.storeAnswers.splice(0)) answer();
        this.#crash(step.stored);
    }
  }

  #pass(): void {
    this.trueNow += MINUTE_MS;
    this.owner.later(MINUTE_MS);
    this.#settle();
  }

  #set(lines: readonly number[]): void {
    this.#sequence += 1;
    const request: SetScheduleRequest = {
      tenant: 'ada',
      key: 'ada',
      provider: 'git_host_a',
      repository: 'acme/shop',
      delivery: { sequence: this.#sequence, storedAt: this.trueNow },
      ref: 'refs/heads/main',
      commit: String(this.#sequence),
      cloneUrl: '',
      source: '.pipeline.yaml',
      yaml: text([stage('a')]),
      lines: lines.map((index) => ({ cron: CRONS[index] ?? '' })),
      idKey: 'secret',
    };
    this.owner.partition.setSchedule(request, () => {});
    this.#settle();
  }

  #pause(): void {
    const { owner } = this;
    owner.partition.schedules({ tenants: ['ada'] }, (reply) => {
      const first = reply.ok ? reply.schedules[0] : undefined;
      if (first === undefined) return;
      owner.partition.pauseSchedule({ id: first.id, tenants: ['ada'], paused: !first.paused }, () => {});
    });
    this.#settle();
  }

  #settle(): void {
    while (this.owner.inFlight > 0) this.log.push(this.owner.acknowledge());
    this.#taken = this.owner.appended.length;
    this.#know();
  }

  /** The next owner knows what the log has, and of runs what the store has: all that were committed. Its clock is right. */
  #crash(stored: boolean): void {
    const underWay = this.owner.appended[this.#taken]?.commit;
    if (stored && underWay !== undefined) this.log.push(underWay);
    this.#know();
    const state = foldOf(this.log);
    const schedules = state === undefined ? [] : [{ state, sequence: 1, isDirty: true }];
    this.owner = new Harness({ schedules });
    this.#taken = 0;
    this.owner.now = this.trueNow;
    for (const id of this.stored) this.owner.storedIds.add(id);
  }

  #know(): void {
    for (const { runs } of this.log) for (const { id } of runs) this.stored.add(id);
    for (const id of this.stored) this.owner.storedIds.add(id);
  }
}

function foldOf(log: readonly Commit[]): ScheduleState | undefined {
  let state: ScheduleState | undefined;
  for (const { schedules = [] } of log)
    for (const { id, events } of schedules)
      for (const event of events) {
        if (state !== undefined) state = evolveSchedule(state, event);
        else if (event.type === 'schedule_set') state = newSchedule(id, event);
      }
  return state;
}

/** Of each line, in the order of the log, what was fired with how many missed. */
function check(log: readonly Commit[]): void {
  const seen = new Set<string>();
  let state: ScheduleState | undefined;
  for (const { runs, schedules = [] } of log) {
    const created = new Map(
      runs.flatMap(({ id, events }) =>
        events.flatMap((event) => (event.type === 'run_created' ? [[id, event] as const] : [])),
      ),
    );
    for (const { id, events } of schedules)
      for (const event of events) {
        const line = state?.lines.find((each) => 'line' in event && each.id === event.line);
        const run = event.type === 'tick_fired' ? created.get(event.runId) : undefined;
        if (event.type === 'tick_fired' && run !== undefined && line !== undefined) {
          const name = `${line.cron} ${event.tick}`;
          deepEqual(seen.has(name), false, `${name} runs a second time`);
          seen.add(name);
          created.delete(event.runId);
          deepEqual(line.paused, undefined, `${name} runs while it is paused`);
          deepEqual(newestTick(cronOf(line.cron), event.tick), event.tick, `${name} is no tick`);
          deepEqual(run.origin.commit, state?.commit, `${name} runs another file`);
          const toldTo = Math.max(line.from - 1, line.toldTo ?? 0);
          const missed = event.tick <= toldTo ? 0 : ticksBetween(cronOf(line.cron), toldTo, event.tick);
          deepEqual(run.origin.tick?.missed, missed, `${name} says how many were missed`);
        }
        if (state !== undefined) state = evolveSchedule(state, event);
        else if (event.type === 'schedule_set') state = newSchedule(id, event);
      }
    deepEqual([...created.keys()], [], 'a run without its tick in the same commit');
  }
}

describe('P28: whatever crashes and clocks do', () => {
  it('a tick runs once, in one commit with what says so, of the newest file, and those that are missed are counted', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 30 }), (steps) => {
        const life = new Life();
        life.do({ kind: 'set', lines: [0, 1, 2] });
        for (const each of steps) life.do(each);
        // With a clock that is right, and nobody in the way, every line goes on.
        life.do({ kind: 'crash', stored: true });
        life.do({ kind: 'set', lines: [0] });
        const before = life.log.length;
        life.do({ kind: 'pass', minutes: 130 });
        check(life.log);
        const line = foldOf(life.log)?.lines[0];
        const fired = life.log.slice(before).flatMap(({ schedules = [] }) => schedules.flatMap(({ events }) => events));
        if (line?.paused !== true) deepEqual(fired.filter(({ type }) => type === 'tick_fired').length >= 10, true);
      }),
      { numRuns: 30 },
    );
  }, 120_000);
});

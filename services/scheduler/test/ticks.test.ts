import type { CreateRequest } from '@penstock/bus';
import type { ScheduleState } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { Ticks, type TicksHost } from '../src/partition/ticks.ts';
import type { LiveRun } from '../src/run/live-run.ts';
import { LiveSchedule, packText } from '../src/run/live-schedule.ts';
import { NOW, stage, text } from './support.ts';

function schedule(name: string, packed = packText({ yaml: text([stage('a')]) }), cron = '* * * * *'): LiveSchedule {
  const state: ScheduleState = {
    id: name,
    tenant: 'ada',
    key: 'ada',
    provider: 'git_host_a',
    repository: name,
    delivery: { sequence: 1, storedAt: NOW },
    ref: 'refs/heads/main',
    commit: 'c'.repeat(40),
    cloneUrl: 'https://host.example/acme/shop.git',
    source: '.pipeline.yaml',
    text: packed,
    idKey: 'secret',
    lines: [{ id: `line of ${name}`, cron, from: NOW - 1 }],
  };
  return new LiveSchedule(name, { state, sequence: 1 });
}

/** Ticks of schedules that are due, with what is asked of its owner. */
function world(createOwn: (request: CreateRequest) => LiveRun | undefined): {
  readonly ticks: Ticks;
  readonly fired: string[];
  readonly said: string[];
  later(ms: number): void;
} {
  let now = NOW;
  const fired: string[] = [];
  const said: string[] = [];
  const host: TicksHost = {
    ports: {
      now: () => now,
      storedRuns: (_ids, then) => then(new Map() as never),
      warn: (_fields, message) => void said.push(message),
    },
    cycle: { addSchedule: (to) => void fired.push(to.id) },
    creation: { createOwn: (request) => createOwn(request) },
    isKnown: () => false,
    readText: (_request, then) => then({ find: () => ({ definition: { name: 'p' } }) } as never),
    mayFire: () => true,
    advance: () => {},
  };
  const ticks = new Ticks(host);
  return { ticks, fired, said, later: (ms) => ((now += ms), ticks.tick()) };
}

describe('what a line was to be looked at for before it was changed', () => {
  it('holds up nobody when its time comes, however often that was', () => {
    const { ticks, fired, later } = world(() => made);
    const changed = schedule('changed', undefined, '0 0 1 * *');
    ticks.changed(changed, undefined);
    ticks.changed(schedule('other', undefined, '1 0 1 * *'), undefined);
    later(1_000);
    for (let count = 0; count < 1_300; count += 1) {
      ticks.changed(changed, changed.state);
      later(1);
    }
    later(MONTH_MS);
    expect(fired).toEqual(['changed', 'other']);
  });
});

const MONTH_MS = 31 * 24 * 60 * 60_000;
const made = { state: { createdAt: NOW } } as unknown as LiveRun;
const TOLD = 'a tick of a schedule cannot be fired; it is tried again';
const NOT_UNDERSTOOD = 'a line of a schedule is not understood; it is looked at again';

describe('TICKS-5: a tick of which even the run that has failed cannot be made', () => {
  it('is said, keeps no other from its turn, and is tried again', () => {
    let isBroken = true;
    const { ticks, fired, said, later } = world(({ origin }) => {
      if (isBroken && origin.repository === 'broken') throw new Error('the engine is at its end');
      return made;
    });
    for (const name of ['broken', 'whole']) ticks.changed(schedule(name), undefined);
    later(1_000);
    expect(fired).toEqual(['whole']);
    expect(said).toContain(TOLD);
    isBroken = false;
    later(1_000);
    expect(fired.filter((name) => name === 'broken')).toEqual([]);
    later(60_000);
    expect(fired.filter((name) => name === 'broken')).toEqual(['broken']);
  });

  it('or whose text is no text is the same, once in a while', () => {
    const { ticks, fired, said, later } = world(() => made);
    for (const [name, packed] of [['broken', 'no text'], ['whole']] as const)
      ticks.changed(schedule(name, packed), undefined);
    later(1_000);
    expect(fired).toEqual(['whole']);
    for (let second = 0; second < 4; second++) later(1_000);
    expect(said).toEqual([TOLD]);
    later(60_000);
    expect(said).toEqual([TOLD, TOLD]);
  });

  it('or whose line is not understood keeps no other from its turn either, and is looked at once in a while', () => {
    const { ticks, fired, said, later } = world(() => made);
    ticks.changed(schedule('first'), undefined);
    ticks.changed(schedule('broken', undefined, '@whenever'), undefined);
    ticks.changed(schedule('last'), undefined);
    later(1_000);
    expect(fired).toEqual(['first', 'last']);
    for (let second = 0; second < 4; second++) later(1_000);
    expect(said).toEqual([NOT_UNDERSTOOD]);
    later(60_000);
    expect(said).toEqual([NOT_UNDERSTOOD, NOT_UNDERSTOOD]);
  });
});

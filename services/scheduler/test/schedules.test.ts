import { randomBytes } from 'node:crypto';
import type { PauseReply, SchedulesReply, SetScheduleReply, SetScheduleRequest } from '@penstock/bus';
import type { ScheduleLine } from '@penstock/pipeline';
import { describe, expect, it } from 'vitest';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const MINUTE_MS = 60_000;
const yaml = text([stage('a')]);

function request(lines: readonly ScheduleLine[], more: Partial<SetScheduleRequest> = {}): SetScheduleRequest {
  return {
    tenant: 'ada',
    key: 'ada',
    provider: 'git_host_a',
    repository: 'acme/shop',
    delivery: { sequence: 5, storedAt: NOW - 1_000 },
    ref: 'refs/heads/main',
    commit: 'c'.repeat(40),
    cloneUrl: 'https://host.example/acme/shop.git',
    source: '.pipeline.yaml',
    yaml,
    lines,
    idKey: 'secret',
    ...more,
  };
}

function set(world: Harness, asked: SetScheduleRequest): SetScheduleReply | undefined {
  let reply: SetScheduleReply | undefined;
  world.partition.setSchedule(asked, (answer) => (reply = answer));
  world.settle();
  return reply;
}

function list(
  world: Harness,
  tenants: readonly string[] = ['ada'],
): Extract<SchedulesReply, { ok: true }>['schedules'] {
  let found: SchedulesReply | undefined;
  world.partition.schedules({ tenants }, (answer) => (found = answer));
  if (found?.ok !== true) throw new Error('no answer');
  return found.schedules;
}

function pause(world: Harness, id: string, paused: boolean): PauseReply | undefined {
  let reply: PauseReply | undefined;
  world.partition.pauseSchedule({ id, tenants: ['ada'], paused }, (answer) => (reply = answer));
  world.settle();
  return reply;
}

/** What each run was created for, in the order of the log. */
function ticks(world: Harness): { readonly at: number; readonly missed: number }[] {
  return world.appended.flatMap(({ commit }) =>
    commit.runs.flatMap(({ events }) =>
      events.flatMap((event) =>
        event.type === 'run_created' && event.origin.tick !== undefined
          ? [{ at: (event.origin.tick.at - NOW) / MINUTE_MS, missed: event.origin.tick.missed }]
          : [],
      ),
    ),
  );
}

describe('schedules of a partition (P28)', () => {
  it('starts a run at each tick, in one commit with the tick that was fired', () => {
    const world = new Harness();
    expect(set(world, request([{ cron: '*/15 * * * *' }]))).toMatchObject({ ok: true });
    world.later(1_000);
    world.settle();
    // The hour has just begun, and the file stood before.
    expect(ticks(world)).toEqual([{ at: 0, missed: 0 }]);
    world.later(14 * MINUTE_MS);
    world.settle();
    expect(ticks(world)).toHaveLength(1);
    world.later(MINUTE_MS);
    const commit = world.acknowledge();
    world.settle();
    expect(ticks(world).at(-1)).toEqual({ at: 15, missed: 0 });
    expect(commit.schedules).toMatchObject([{ events: [{ type: 'tick_fired', tick: NOW + 15 * MINUTE_MS }] }]);
    const [created] = commit.runs.flatMap(({ events }) => events);
    expect(created).toMatchObject({
      tenant: 'ada',
      key: 'ada',
      yaml,
      origin: { kind: 'schedule', repository: 'acme/shop', ref: 'refs/heads/main', trusted: true },
    });
    expect(list(world)).toMatchObject([
      { cron: '*/15 * * * *', nextAt: '2027-01-15T08:30:00.000Z', lastRunId: commit.runs[0]?.id, paused: false },
    ]);
  });

  it('after an outage starts the newest missed one, and says how many others there were', () => {
    const world = new Harness();
    set(world, request([{ cron: '*/15 * * * *' }], { delivery: { sequence: 5, storedAt: NOW + 1 } }));
    world.later(3 * HOUR_MS + MINUTE_MS);
    world.settle();
    expect(ticks(world)).toEqual([{ at: 180, missed: 11 }]);
  });

  it('a tick whose run the store knows is not started again', () => {
    const first = new Harness();
    set(first, request([{ cron: '*/15 * * * *' }]));
    first.later(1_000);
    first.settle();
    const [id = ''] = [...first.partition.liveRuns].map((run) => run.id);
    const second = new Harness();
    second.storedIds.add(id);
    set(second, request([{ cron: '*/15 * * * *' }]));
    second.later(1_000);
    second.settle();
    expect(ticks(second)).toEqual([]);
    expect(list(second)).toMatchObject([{ lastRunId: id }]);
    second.later(15 * MINUTE_MS);
    second.settle();
    expect(ticks(second)).toEqual([{ at: 15, missed: 0 }]);
  });

  it('TICKS-4: of many that are due at once few are begun in a turn, and not all are of one key; all are fired in the end', () => {
    const world = new Harness();
    const lines = [{ cron: '*/15 * * * *' }];
    for (let index = 0; index < 90; index += 1) set(world, request(lines, { repository: `acme/${index}` }));
    set(world, request(lines, { tenant: 'grace', key: 'grace', repository: 'grace/shop' }));
    world.answersStoreLater = true;
    const asked = (): number => world.askedStore.length;
    world.later(1_000);
    expect(asked()).toBe(32);
    for (let turn = 0; turn < 50 && world.partition.nextWake() === world.boot; turn += 1) {
      const before = asked();
      world.partition.tick();
      expect(asked() - before).toBeLessThanOrEqual(32);
    }
    expect(asked()).toBe(64 + 1);
    world.answersStoreLater = false;
    for (const answer of world.storeAnswers.splice(0)) answer();
    world.settle();
    expect([...world.partition.liveRuns].filter(({ state }) => state.key === 'grace')).toHaveLength(1);
    for (let second = 0; second < 20; second += 1) {
      world.later(1_000);
      for (let turn = 0; turn < 50 && world.partition.nextWake() === world.boot; turn += 1) world.partition.tick();
      world.settle();
    }
    expect(ticks(world)).toHaveLength(91);
  });

  it('TICKS-4: a line whose schedule changes while its tick is on its way is begun once, and takes one place', () => {
    const world = new Harness();
    const repositories = Array.from({ length: 25 }, (_, index) => `acme/${index}`);
    let sequence = 5;
    const push = (): void => {
      const delivery = { sequence: (sequence += 1), storedAt: NOW - 1_000 };
      for (const repository of repositories) set(world, request([{ cron: '*/15 * * * *' }], { repository, delivery }));
    };
    const begin = (): void => {
      for (let turn = 0; turn < 10; turn += 1) world.partition.tick();
    };
    push();
    world.later(1_000);
    begin();
    world.settle();
    world.later(6_000);
    const first = ticks(world).length;
    for (let round = 1; round <= 3; round += 1) {
      world.answersStoreLater = true;
      const before = world.askedStore.length;
      world.later(15 * MINUTE_MS - 6_000);
      begin();
      push();
      begin();
      expect(world.askedStore.length - before).toBe(repositories.length);
      world.answersStoreLater = false;
      for (const answer of world.storeAnswers.splice(0)) answer();
      for (let second = 0; second < 6; second += 1) {
        begin();
        world.settle();
        world.later(1_000);
      }
      expect(ticks(world)).toHaveLength(first + repositories.length * round);
    }
  });

  it('a tick for which there is no room is tried again after a tenth of the time for which that is so, a minute at most', () => {
    const world = new Harness();
    set(world, request([{ cron: '0 * * * *' }]));
    world.stored = 'unavailable';
    const triedAt: number[] = [];
    for (let second = 1; second <= 50 * 60; second += 1) {
      const before = world.askedStore.length;
      world.later(1_000);
      if (world.askedStore.length > before) triedAt.push(second);
    }
    const pauses = triedAt.slice(1).map((at, index) => at - (triedAt[index] ?? 0));
    expect(pauses[0]).toBeLessThanOrEqual(6);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(61);
    expect(triedAt.length).toBeLessThan(80);
    world.stored = false;
    world.later(60_000);
    world.settle();
    expect(ticks(world)).toEqual([{ at: 0, missed: 0 }]);
  });

  it('SCHEDULES-3: those of one key take an eighth of the room; others have theirs, and what makes less of it is taken', () => {
    const world = new Harness();
    const packed = (repository: string, key = 'ada'): SetScheduleReply | undefined =>
      set(
        world,
        request([{ cron: '0 0 1 1 *' }], {
          tenant: key,
          key,
          repository,
          yaml: randomBytes(225_000).toString('base64'),
        }),
      );
    let kept = 0;
    while (packed(`acme/${kept}`)?.ok === true) kept += 1;
    expect(kept).toBeGreaterThan(40);
    expect(kept).toBeLessThan(80);
    expect(packed('acme/more')).toMatchObject({
      ok: false,
      code: 'QUOTA_EXCEEDED',
      message: expect.stringMatching('one user'),
    });
    expect(packed('grace/shop', 'grace')).toMatchObject({ ok: true });
    const delivery = { sequence: 6, storedAt: NOW };
    expect(set(world, request([], { repository: 'acme/0', delivery }))).toMatchObject({ ok: true });
    expect(packed('acme/more')).toMatchObject({ ok: true });
  });

  it('SCHEDULES-3: those of many keys, each with as much as it may have, leave room for those of another', () => {
    const world = new Harness();
    const yaml = `#${randomBytes(337_000).toString('base64')}`;
    const packed = (repository: string, key: string): SetScheduleReply | undefined =>
      set(world, request([{ cron: '0 0 1 1 *' }], { tenant: key, key, repository, yaml }));
    for (let key = 0; key < 10; key += 1)
      for (let kept = 0; packed(`acme/${kept}`, `key${key}`)?.ok === true; kept += 1);
    expect(packed('grace/shop', 'grace')).toMatchObject({ ok: true });
  });

  it('a clock that goes an hour ahead and back starts each tick once', () => {
    const world = new Harness();
    set(world, request([{ cron: '*/15 * * * *' }]));
    world.later(1_000);
    world.settle();
    world.now += HOUR_MS;
    world.later(1_000);
    world.settle();
    world.now -= HOUR_MS;
    for (let minutes = 0; minutes < 120; minutes += 1) {
      world.later(MINUTE_MS);
      world.settle();
      world.project();
      for (const { commit } of world.appended) for (const { id } of commit.runs) world.storedIds.add(id);
    }
    const fired = ticks(world).map(({ at }) => at);
    expect(fired.toSorted((a, b) => a - b)).toEqual([0, 15, 30, 45, 60, 75, 90, 105, 120]);
    expect(ticks(world)[1]).toEqual({ at: 60, missed: 3 });
  });

  it('waits for the store, and for an owner that is sure to be it; a newer tick then counts the older as missed', () => {
    const world = new Harness();
    set(world, request([{ cron: '* * * * *' }]));
    world.stored = 'unavailable';
    world.later(1_000);
    world.settle();
    expect(ticks(world)).toEqual([]);
    world.stored = false;
    world.mayAct = false;
    world.later(MINUTE_MS);
    world.settle();
    expect(ticks(world)).toEqual([]);
    world.mayAct = true;
    world.later(MINUTE_MS);
    world.settle();
    expect(ticks(world)).toEqual([{ at: 2, missed: 2 }]);
  });

  it('the answer of the store is worth nothing once the owner is not sure any more, or the file is another one', () => {
    const world = new Harness();
    world.answersStoreLater = true;
    set(world, request([{ cron: '* * * * *' }]));
    world.later(1_000);
    world.mayAct = false;
    world.storeAnswers.shift()?.();
    world.mayAct = true;
    world.later(1_000);
    set(world, request([], { delivery: { sequence: 6, storedAt: NOW } }));
    world.storeAnswers.shift()?.();
    world.settle();
    expect(ticks(world)).toEqual([]);
    expect(list(world)).toEqual([]);
  });

  it('the newest delivery decides; a line that both files have goes on', () => {
    const world = new Harness();
    set(
      world,
      request([{ cron: '0 * * * *' }, { cron: '30 * * * *' }], { delivery: { sequence: 7, storedAt: NOW - 1 } }),
    );
    world.later(1_000);
    world.settle();
    const [first] = list(world);
    set(world, request([{ cron: '0 9 * * *' }], { delivery: { sequence: 6, storedAt: NOW } }));
    expect(list(world)).toHaveLength(2);
    set(world, request([{ cron: '0 * * * *' }], { delivery: { sequence: 8, storedAt: NOW + 1 } }));
    expect(list(world)).toEqual([first]);
    world.later(1_000);
    world.settle();
    expect(ticks(world)).toEqual([{ at: 0, missed: 0 }]);
    set(world, request([], { delivery: { sequence: 9, storedAt: NOW + 2 } }));
    set(world, request([{ cron: '0 * * * *' }], { delivery: { sequence: 8, storedAt: NOW + 1 } }));
    expect(list(world)).toEqual([]);
  });

  it('one that was paused starts nothing, and what came meanwhile is not made up for', () => {
    const world = new Harness();
    set(world, request([{ cron: '*/15 * * * *' }]));
    world.later(1_000);
    world.settle();
    const [{ id } = { id: '' }] = list(world);
    expect(pause(world, id, true)).toMatchObject({ ok: true, schedule: { paused: true, nextAt: null } });
    expect(pause(world, id, true)).toMatchObject({ ok: true, schedule: { paused: true } });
    world.later(HOUR_MS);
    world.settle();
    expect(pause(world, id, false)).toMatchObject({ ok: true, schedule: { paused: false } });
    world.later(1_000);
    world.settle();
    expect(ticks(world)).toHaveLength(1);
    world.later(15 * MINUTE_MS);
    world.settle();
    expect(ticks(world).at(-1)).toEqual({ at: 75, missed: 0 });
    expect(pause(world, '00000000-0000-7000-8000-000000000000', true)).toMatchObject({
      ok: false,
      code: 'NOT_FOUND',
      message: expect.stringContaining(
        "There is no schedule '00000000-0000-7000-8000-000000000000' among those of your repositories",
      ) as unknown,
    });
  });

  it('one that was paused is still paused after files that lacked it, and until it is resumed', () => {
    const world = new Harness();
    const line = { cron: '*/15 * * * *', inputs: { target: 'x' } };
    const push = (sequence: number, lines: readonly ScheduleLine[]) =>
      set(world, request(lines, { delivery: { sequence, storedAt: world.now } }));
    push(5, [line, { cron: '*/15 * * * *' }]);
    const [first, second] = list(world);
    const paused = [first, second].find((each) => each?.inputs.length === 1)?.id ?? '';
    pause(world, paused, true);
    push(6, []);
    expect(list(world)).toEqual([]);
    push(7, [{ cron: '0 0 1 1 *' }]);
    push(8, [line, { cron: '*/15 * * * *' }]);
    expect(list(world).map(({ id, paused: isPaused }) => [id === paused, isPaused])).toEqual(
      expect.arrayContaining([
        [true, true],
        [false, false],
      ]),
    );
    world.later(HOUR_MS);
    world.settle();
    expect(ticks(world)).toHaveLength(1);
    expect(pause(world, paused, false)).toMatchObject({ ok: true, schedule: { paused: false } });
    push(9, []);
    push(10, [line]);
    expect(list(world)).toMatchObject([{ id: paused, paused: false }]);
  });

  it('of a hundred lines at most it is known that they were paused', () => {
    const world = new Harness();
    let sequence = 5;
    const push = (lines: readonly ScheduleLine[]) =>
      set(world, request(lines, { delivery: { sequence: sequence++, storedAt: NOW } }));
    const lines = Array.from({ length: 101 }, (_, minute) => ({
      cron: `${minute % 60} ${Math.floor(minute / 60)} * * *`,
    }));
    for (const line of lines) {
      push([line]);
      pause(world, list(world)[0]?.id ?? '', true);
      push([]);
    }
    push(lines);
    expect(list(world).filter(({ paused }) => !paused)).toMatchObject([{ cron: '0 0 * * *' }]);
  });

  it('another tenant sees and pauses nothing', () => {
    const world = new Harness();
    set(world, request([{ cron: '*/15 * * * *' }], { tenant: 'eve', key: 'eve' }));
    expect(list(world)).toEqual([]);
    const [{ id } = { id: '' }] = list(world, ['eve']);
    expect(id).not.toBe('');
    expect(pause(world, id, true)).toMatchObject({ ok: false, code: 'NOT_FOUND' });
  });

  it('a required input that nobody gives is a run that has failed; one that the line gives is taken', () => {
    const input = { name: 'target', type: 'string', required: true, description: '', options: [] } as never;
    const takes = text([stage('a')], { inputs: [input] });
    const world = new Harness();
    set(world, request([{ cron: '0 * * * *' }, { cron: '0 * * * *', inputs: { target: 'x' } }], { yaml: takes }));
    world.later(1_000);
    world.settle();
    const states = [...world.partition.liveRuns].map(({ state }) => state);
    expect(states).toHaveLength(2);
    expect(states.find(({ status }) => status === 'FAILED')).toMatchObject({
      reason: 'pipeline_file',
      pipelineName: 'ship',
    });
    expect(states.find(({ status }) => status !== 'FAILED')).toMatchObject({ inputs: { target: 'x' } });
  });

  it('over the limit of the month it is a run that has failed', () => {
    const world = new Harness();
    const limits = { pipelineRunLimit: 1, maxConcurrent: 5 };
    set(world, request([{ cron: '*/15 * * * *' }], { limits }));
    world.later(1_000);
    world.settle();
    world.later(15 * MINUTE_MS);
    world.settle();
    const states = [...world.partition.liveRuns].map(({ state }) => state);
    const inOrder = states.toSorted((a, b) => a.createdAt - b.createdAt);
    expect(inOrder.map(({ reason }) => reason)).toEqual([undefined, 'quota']);
  });

  it('a file without a schedule, of a repository that never had one, is no commit', () => {
    const world = new Harness();
    expect(set(world, request([]))).toMatchObject({ ok: true });
    expect(world.appended).toEqual([]);
  });

  it('a line that no build can read is refused', () => {
    expect(set(new Harness(), request([{ cron: 'x' }]))).toMatchObject({ ok: false, code: 'BAD_USER_INPUT' });
  });
});

/** Runs that wait outside of memory: they are held there, found there, and come back in their turn. */
import type { GetReply, Job, WatchReply } from '@penstock/bus';
import { newRunId, viewOf, type RunCreated, type RunEvent } from '@penstock/run';
import {
  COMMIT_FORMAT,
  encodeCommit,
  LiveRun,
  loadPartition,
  RestoreRoom,
  type OpenedPartition,
} from '@penstock/scheduler/testing';
import type { RunDocument, RunsLedger } from '@penstock/store';
import { describe, expect, it } from 'vitest';
import { encodeEvent } from '../src/run/commit.ts';
import { definitions, Harness, HOUR_MS, NOW, settings, stage, text } from './support.ts';

const one = text([stage('a')]);
const BYTES_MAX = 100 * 1024;
/** The key has all that it may have from the fifth run on, and those behind it wait outside. */
const KEPT = 5;

function crowded(
  runs: number,
  options: ConstructorParameters<typeof Harness>[0] = {},
): { world: Harness; ids: string[] } {
  const world = new Harness({ liveBytesMax: BYTES_MAX, ...options });
  const ids: string[] = [];
  for (let index = 0; index < runs; index++) {
    const { id, replies } = world.create(one);
    world.settle();
    expect(replies).toMatchObject([{ ok: true, created: true }]);
    world.project();
    ids.push(id);
  }
  return { world, ids };
}

const inMemory = ({ partition }: Harness): string[] => [...partition.liveRuns].map(({ id }) => id);

/** Every job is done as soon as it comes, one slot at a time; answers in which order the runs began. */
function workOff(world: Harness, onStep: () => void = () => {}): Job[] {
  const done: Job[] = [];
  for (let credit = 1, idle = 0; world.load.liveRuns > 0 && idle < 5; credit++) {
    world.credit('r1-s', 'r1', credit);
    world.settle();
    const job = world.jobs[done.length]?.message;
    if (job !== undefined) {
      world.result(job);
      done.push(job);
      idle = 0;
    } else idle += 1;
    world.settle();
    world.project();
    world.answerReads();
    world.settle();
    world.later(10);
    onStep();
  }
  return done;
}

describe('a partition whose live runs take what they may', () => {
  it('takes new runs in, holds them outside once they are stored, and brings them back in their order', () => {
    const { world, ids } = crowded(40);
    expect(inMemory(world)).toEqual(ids.slice(0, KEPT));
    expect(world.partition.parkedRuns).toBe(40 - KEPT);
    expect(world.load.liveRuns).toBe(40);
    expect(world.load.liveBytes).toBeLessThan(BYTES_MAX);
    world.session('r1-s');
    expect(workOff(world).map(({ runId }) => runId)).toEqual(ids);
    expect(world.load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
    expect(world.partition.parkedRuns).toBe(0);
  });

  it('offers nobody what is on its way out, however many slots are free', () => {
    const { world, ids } = crowded(KEPT);
    world.create(one);
    world.create(one);
    world.settle();
    world.session('r1-s', { credits: 40 });
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids);
  });

  it('parks new runs of a key behind those that are on their way back', () => {
    const { world, ids } = crowded(KEPT + 1);
    world.session('r1-s', { credits: 1 });
    world.settle();
    world.result(world.job(0));
    world.settle();
    world.project();
    expect(world.reads).toHaveLength(1);
    const { replies } = world.create(one);
    world.settle();
    for (let credit = 2; credit < 7; credit++) {
      world.credit('r1-s', 'r1', credit);
      world.settle();
    }
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids.slice(0, KEPT));
    world.answerReads();
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids);
    expect(replies).toMatchObject([{ ok: true, created: true }]);
  });

  it('P7: makes no run anew that is outside by the time at which the store answers about its id from before', () => {
    const { world } = crowded(KEPT);
    const id = world.id({ ageMs: 2 * HOUR_MS });
    world.answersStoreLater = true;
    const [first, again] = [world.create(one, { id }), world.create(one, { id })];
    world.storeAnswers.shift()?.();
    world.settle();
    world.project();
    expect(inMemory(world)).not.toContain(id);
    world.storeAnswers.shift()?.();
    world.answerReads();
    world.settle();
    expect([first.replies, again.replies]).toMatchObject([[{ created: true }], [{ ok: true, created: false }]]);
    expect(world.load.liveRuns).toBe(KEPT + 1);
  });

  it('holds no run outside that waits for its group, nor one whose document is not stored yet', () => {
    const { world } = crowded(KEPT);
    const grouped = Array.from(
      { length: 2 },
      () =>
        world.create(text([stage('a')], { concurrency: { group: ['main'], cancelInProgress: false } }), { key: 'bob' })
          .id,
    );
    const waiting = world.create(one).id;
    world.settle();
    expect(inMemory(world)).toEqual(expect.arrayContaining([...grouped, waiting]));
    world.project();
    expect(inMemory(world)).toEqual(expect.arrayContaining(grouped));
    expect(inMemory(world)).not.toContain(waiting);
  });

  it('gives a parked run to whoever asks: get, watch, lists, open, and a create that is sent again', () => {
    const { world, ids } = crowded(8);
    const outside = ids.at(-1) ?? '';
    expect(inMemory(world)).not.toContain(outside);
    const gets: GetReply[] = [];
    world.partition.get({ runIds: [outside] }, (reply) => void gets.push(reply));
    world.partition.get({ runIds: [], tenants: ['ada'], newest: 2 }, (reply) => void gets.push(reply));
    world.partition.get({ runIds: [], tenants: ['eve'], newest: 2 }, (reply) => void gets.push(reply));
    const watched: WatchReply[] = [];
    world.partition.watch({ runId: outside, after: 2 }, (reply) => void watched.push(reply));
    expect(watched).toMatchObject([{ run: { version: 2, events: [], more: false } }]);
    world.partition.watch({ runId: outside, after: 0 }, (reply) => void watched.push(reply));
    const again = world.create(one, { id: outside }).replies;
    const other = world.create(one, { id: outside, key: 'bob' }).replies;
    world.answerReads();
    expect(gets).toHaveLength(3);
    expect(gets[0]).toMatchObject({ ok: true, runs: [] });
    expect(gets[1]).toMatchObject({ ok: true, runs: [{ id: outside, version: 2 }] });
    expect(gets[2]).toMatchObject({ ok: true, runs: [{ id: ids.at(-1) }, { id: ids.at(-2) }] });
    expect(watched[1]).toMatchObject({
      run: { version: 2, events: [{ type: 'run_created' }, { type: 'stages_queued' }] },
    });
    expect(again).toMatchObject([{ ok: true, created: false, run: { id: outside } }]);
    expect(other).toMatchObject([{ ok: false, code: 'CONFLICT' }]);
    const open: unknown[] = [];
    world.partition.openRuns({ runIds: [outside, 'unknown'] }, (reply) => void open.push(reply));
    expect(open).toMatchObject([{ open: [outside] }]);
    expect(inMemory(world)).not.toContain(outside);
  });

  it('P13: an attempt of a parked run that a runner lists is stopped, and brings none back: there may be any number of them', () => {
    const { world, ids } = crowded(40);
    const attempts = ids.map((runId) => ({ runId, stage: 'a', attempt: 1, session: 'r1-s', credit: 1 }));
    world.session('r1-s', { attempts });
    world.answerReads();
    expect(inMemory(world)).toEqual(ids.slice(0, KEPT));
    expect(world.stops.map(({ message }) => message.runId).toSorted()).toEqual(ids.toSorted());
    world.mayAct = false;
    world.session('r1-s', { attempts });
    expect(world.stops).toHaveLength(ids.length);
  });

  it('brings a run back to cancel it, whatever room there is; of another tenant it is none', () => {
    const { world, ids } = crowded(8);
    const outside = ids.at(-1) ?? '';
    const replies: unknown[] = [];
    world.partition.cancel({ runId: outside, tenants: ['eve'] }, (reply) => void replies.push(reply));
    expect(replies).toMatchObject([{ ok: false, code: 'NOT_FOUND' }]);
    world.partition.cancel({ runId: outside, tenants: ['ada'] }, (reply) => void replies.push(reply));
    world.answerReads();
    world.settle();
    expect(replies[1]).toMatchObject({ ok: true, cancelledStages: 1, run: { status: 'CANCELLED' } });
    world.project();
    expect(world.load.liveRuns).toBe(7);
  });

  it('P5: ends the wait of a parked run by the boot clock, whatever the wall clock says meanwhile', () => {
    const { world, ids } = crowded(8);
    const outside = ids.at(-1) ?? '';
    const ends = (): boolean =>
      world.appended.some(({ commit }) =>
        commit.runs.some(({ id, events }) => id === outside && events.some(({ type }) => type === 'run_completed')),
      );
    const pass = (ms: number): void => {
      world.later(ms);
      world.answerReads();
      world.settle();
    };
    world.now -= HOUR_MS;
    pass(24 * HOUR_MS - 60_000);
    expect(ends()).toBe(false);
    pass(61_000);
    pass(1_000);
    expect(ends()).toBe(true);
  });

  it('asks again at each tick while the store does not answer, and answers nobody meanwhile', () => {
    const { world, ids } = crowded(KEPT + 2);
    world.session('r1-s');
    world.storeIsAway = true;
    const gets: GetReply[] = [];
    world.partition.get({ runIds: [ids.at(-1) ?? ''] }, (reply) => void gets.push(reply));
    expect(workOff(world).map(({ runId }) => runId)).toEqual(ids.slice(0, KEPT));
    expect(gets).toEqual([]);
    world.storeIsAway = false;
    workOff(world);
    expect(world.load.liveRuns).toBe(0);
  });

  it('P23: brings back at once those that have the concurrency slots for which others wait', () => {
    const { world, ids } = crowded(8);
    const before = world.partition.parkedRuns;
    // The key has a limit from now on, and all that go on are above it: its next run waits for them.
    const last = world.create(one, { limits: { maxConcurrent: 1, pipelineRunLimit: 100 } as never });
    world.settle();
    world.project();
    expect(last.replies).toMatchObject([{ ok: true }]);
    expect(before).toBe(3);
    // However much the runs that wait for a slot take.
    Object.assign(world.load, { liveBytesMax: 1 });
    world.session('r1-s');
    expect(workOff(world).map(({ runId }) => runId)).toEqual([...ids, last.id]);
  });

  it('P23: a run outside that could go on is held again where the limit falls before it is back', () => {
    const limits = (maxConcurrent: number): object => ({ limits: { maxConcurrent, pipelineRunLimit: 100 } });
    const { world, ids } = crowded(8);
    const goOn = (): number => {
      const kinds = world.events();
      const count = (kind: string): number => kinds.filter((type) => type === kind).length;
      return count('run_created') - count('run_held') + count('run_admitted') - count('run_completed');
    };
    const add = (maxConcurrent: number): void => {
      ids.push(world.create(one, limits(maxConcurrent) as never).id);
      world.settle();
      world.project();
      world.partition.assertInvariants();
    };
    for (let index = 0; index < 4; index++) add(8);
    expect(goOn()).toBe(8);
    // Four have their turn, and no room to come; when there is room, but one of them may go on.
    add(12);
    add(9);
    Object.assign(world.load, { liveBytesMax: 100 * BYTES_MAX });
    world.session('r1-s');
    const done = workOff(world, () => {
      world.partition.assertInvariants();
      expect(goOn()).toBeLessThanOrEqual(9);
    });
    expect(done.map(({ runId }) => runId)).toEqual(ids);
    expect(world.load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
  });

  it('is dropped where the store has another run than the one that was parked', () => {
    const { world, ids } = crowded(8);
    const outside = ids.at(-1) ?? '';
    const document = world.documents.get(outside);
    world.documents.set(outside, { events: document?.events.slice(0, 1) ?? [], sequence: 1 });
    world.partition.cancel({ runId: outside, tenants: ['ada'] }, () => {});
    expect(() => world.answerReads()).toThrow('was parked at version 2');
  });

  it('is dropped where the document of one is damaged, which the next owner leaves out: others would wait behind it', () => {
    const { world, ids } = crowded(8);
    const outside = ids[KEPT] ?? '';
    world.damaged.add(outside);
    world.partition.cancel({ runId: outside, tenants: ['ada'] }, () => {});
    expect(() => world.answerReads()).toThrow(`the document of run ${outside}, which waits outside, is damaged`);
  });

  it('goes on where the document of a run is damaged that another is to repeat', () => {
    const world = new Harness();
    const parent = world.id();
    world.damaged.add(parent);
    const { replies } = world.create(one, { rerun: { parent } as never });
    world.answerReads();
    world.settle();
    expect(replies).toMatchObject([{ ok: false, code: 'UNAVAILABLE' }]);
  });
});

// --- Take-over -------------------------------------------------------------------------------------------------------

const opened: OpenedPartition = {
  epoch: 7,
  incarnation: 1,
  sequence: 100,
  commitNumber: 1,
  idsTo: 0,
  neverOwned: false,
};

function documentOf(index: number, key: string, more: Partial<RunDocument> = {}): RunDocument {
  const at = NOW + index;
  const id = newRunId({ now: at, key, random: Uint8Array.of(0, 0, 0, 0, 0, 0, index >> 8, index & 255) });
  const created: RunCreated = {
    type: 'run_created',
    at,
    tenant: 'ada',
    key,
    pipelineName: 'ship',
    yaml: one,
    priority: 0,
    origin: { kind: 'api' },
  };
  const events: RunEvent[] = [created, { type: 'stages_queued', at, stages: ['a'] }];
  const { state } = LiveRun.restore(id, definitions.find(one).definition, { events, sequence: 0 }, settings);
  const document = {
    partition: 0,
    open: true,
    incarnation: 1,
    sequence: 1 + index,
    state,
    events,
    view: viewOf(state),
    ...more,
  };
  return JSON.parse(JSON.stringify(document)) as RunDocument;
}

/** As a take-over reads them, one after the other. */
function stored(documents: readonly RunDocument[], commits: readonly Uint8Array[] = []) {
  const saved: string[] = [];
  const byId = new Map(documents.map((document) => [document.state.id, document]));
  const ledger = {
    openOf: async function* () {
      yield* documents;
    },
    laterThan: async function* () {},
    countersOf: async function* () {},
    schedulesOf: async function* () {},
    newestSchedule: async () => null,
    checkpoint: async () => ({ partition: 0, incarnation: 1, sequence: 50, commit: 0 }),
    getAsOwner: async (id: string) => byId.get(id) ?? null,
    saveBatch: async (batch: readonly RunDocument[]) => {
      saved.push(...batch.map(({ state, incarnation, sequence }) => `${state.id} ${incarnation}/${sequence}`));
      return { stale: [] };
    },
  } as unknown as RunsLedger;
  const log = {
    partition: 0,
    read: async function* () {
      for (const [index, bytes] of commits.entries()) yield { sequence: 51 + index, commitId: '', bytes };
    },
  } as never;
  const opening = { partition: 0, log, ledger, signal: new AbortController().signal, now: () => NOW } as never;
  return { opening, saved };
}

const restoring = { definitions, settings, log: { error: () => {} } };

describe('P6: a take-over', () => {
  it('of a backlog of twenty times the memory opens within it, and works all of it off: keys in turn, each in its order', async () => {
    const documents = Array.from({ length: 480 }, (_, index) =>
      documentOf(index, index < 300 ? 'ada' : `k${index % 3}`),
    );
    const load = { ...new Harness().load, liveBytesMax: BYTES_MAX };
    const room = new RestoreRoom(load);
    const { runs, parked } = await loadPartition(opened, stored(documents).opening, { ...restoring, room });
    expect(runs.length + parked.length).toBe(480);
    expect(load.liveBytes).toBeLessThan(BYTES_MAX);
    room.freeAll();
    expect(load.liveBytes).toBe(0);
    const world = new Harness({ liveBytesMax: BYTES_MAX, runs, parked });
    for (const { state, events, sequence } of documents) world.documents.set(state.id, { events, sequence });
    expect(world.load.liveRuns).toBe(480);
    world.session('r1-s');
    let most = 0;
    const done = workOff(world, () => {
      most = Math.max(most, world.load.liveBytes);
    });
    expect(most).toBeLessThan(BYTES_MAX);
    expect(world.load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
    for (const key of ['ada', 'k0', 'k1', 'k2']) {
      const ids = documents.filter(({ state }) => state.key === key).map(({ state }) => state.id);
      expect(done.filter((job) => job.key === key).map(({ runId }) => runId)).toEqual(ids);
    }
    // Nobody waits for the 300 of one key: a quarter of the first jobs is each one's.
    const early = Map.groupBy(done.slice(0, 160), ({ key }) => key);
    expect(Math.min(...['ada', 'k0', 'k1', 'k2'].map((key) => early.get(key)?.length ?? 0))).toBeGreaterThan(25);
  });

  it('reads into memory what the log says more of, and writes anew what stands for a log that was lost', async () => {
    const documents = [documentOf(0, 'ada'), documentOf(1, 'ada', { incarnation: 0 }), documentOf(2, 'ada')];
    const [first, second, third] = documents.map(({ state }) => state.id);
    const started: RunEvent = {
      type: 'stage_started',
      at: NOW + 9,
      stage: 'a',
      attempt: 1,
      runner: 'r1',
      session: 's',
      credit: 1,
    };
    const head = {
      id: 'c',
      kind: 'runs' as const,
      partition: 0,
      epoch: 1,
      number: 1,
      owner: 'old',
      minReader: COMMIT_FORMAT,
      at: NOW,
    };
    const commit = encodeCommit(head, [
      { id: first ?? '', from: 3, events: [encodeEvent(started)] },
      { id: third ?? '', from: 1, events: documents[2]?.events.map(encodeEvent) ?? [] },
    ]);
    const room = new RestoreRoom({ ...new Harness().load, liveBytesMax: 1 });
    room.take('ada', documents[0] as RunDocument);
    const { opening, saved } = stored(documents, [commit]);
    const { runs, parked } = await loadPartition(opened, opening, { ...restoring, room });
    expect(runs.map(({ id, state }) => [id, state.version])).toEqual([[first, 3]]);
    expect(parked.map(({ id, version }) => [id, version])).toEqual([
      [second, 2],
      [third, 2],
    ]);
    expect(saved).toEqual([`${second} 1/100`]);
  });
});

// --- Those that wait for their turn ------------------------------------------------------------------------------------

const grouped = text([stage('a')], { concurrency: { group: ['main'], cancelInProgress: false } });
const superseding = text([stage('a')], { concurrency: { group: ['main'], cancelInProgress: true } });
const oneAtOnce = { limits: { maxConcurrent: 1, pipelineRunLimit: 1_000 } as never };

/** A backlog of runs that wait for their turn, each projected. */
function waitingBacklog(runs: number, yaml: string, more: Parameters<Harness['create']>[1] = {}) {
  const world = new Harness({ liveBytesMax: BYTES_MAX });
  let most = 0;
  const ids = Array.from({ length: runs }, () => {
    const { id, replies } = world.create(yaml, more);
    world.settle();
    expect(replies).toMatchObject([{ ok: true, created: true }]);
    world.project();
    most = Math.max(most, world.load.liveBytes);
    return id;
  });
  return { world, ids, most };
}

function eventsOf(world: Harness, runId: string): string[] {
  return world.appended.flatMap(({ commit }) =>
    commit.runs.flatMap(({ id, events }) => (id === runId ? events.map(({ type }) => type) : [])),
  );
}

describe.each([
  ['its quota', one, oneAtOnce],
  ['its group', grouped, {}],
])('a backlog that waits for %s', (_what, yaml, more) => {
  it('P23: waits outside of memory, and goes on one by one in its order', () => {
    const { world, ids, most } = waitingBacklog(60, yaml, more);
    expect(most).toBeLessThan(BYTES_MAX);
    expect(inMemory(world).length).toBeLessThan(10);
    expect(world.partition.parkedRuns).toBe(60 - inMemory(world).length);
    const use: unknown[] = [];
    world.partition.get(
      { runIds: [], usage: { key: 'ada', month: '2027-01' } },
      ({ ...reply }) => void use.push(reply),
    );
    expect(use).toMatchObject([{ usage: { active: 1, runs: 60 } }]);
    world.session('r1-s');
    const done = workOff(world, () => {
      expect(world.load.liveBytes).toBeLessThan(BYTES_MAX);
    });
    expect(done.map(({ runId }) => runId)).toEqual(ids);
    expect(world.load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
  });

  it('P6: is found by a take-over within the memory that there is', async () => {
    const { world, ids } = waitingBacklog(60, yaml, more);
    const documents = ids.map((id): RunDocument => {
      const { events, sequence } = world.documents.get(id) ?? { events: [], sequence: 0 };
      const run = LiveRun.restore(id, definitions.find(yaml).definition, { events: [...events], sequence }, settings);
      const { state } = run;
      const base = { partition: 0, open: true, incarnation: 1, sequence, state, events, view: viewOf(state) };
      return JSON.parse(JSON.stringify(base)) as RunDocument;
    });
    const load = { ...new Harness().load, liveBytesMax: BYTES_MAX };
    const room = new RestoreRoom(load);
    const { runs, parked } = await loadPartition(opened, stored(documents).opening, { ...restoring, room });
    expect(runs.length).toBeLessThan(30);
    expect(runs.length + parked.length).toBe(60);
    room.freeAll();
    const usages = yaml === one ? [{ tenant: 'ada', key: 'ada', maxConcurrent: 1, months: [] }] : [];
    const next = new Harness({ liveBytesMax: BYTES_MAX, runs, parked, usages });
    for (const { state, events, sequence } of documents) next.documents.set(state.id, { events, sequence });
    next.session('r1-s');
    const done = workOff(next, () => {
      expect(next.load.liveBytes).toBeLessThan(BYTES_MAX);
    });
    expect(done.map(({ runId }) => runId)).toEqual(ids);
  });

  it('P13: is cancelled where it waits, the next one goes on, and what the store does not give is asked for again', () => {
    const { world, ids } = waitingBacklog(30, yaml, more);
    const last = ids.at(-1) ?? '';
    const replies: unknown[] = [];
    world.partition.cancel({ runId: last, tenants: ['ada'] }, (reply) => void replies.push(reply));
    world.answerReads();
    world.settle();
    expect(replies).toMatchObject([{ ok: true, run: { status: 'CANCELLED' } }]);
    world.project();
    world.session('r1-s');
    world.storeIsAway = true;
    const first = workOff(world);
    expect(first.length).toBeLessThan(29);
    world.storeIsAway = false;
    const rest = workOff(world);
    expect([...first, ...rest.slice(first.length)].map(({ runId }) => runId)).toEqual(ids.slice(0, -1));
    expect(eventsOf(world, last)).not.toContain('stage_started');
  });
});

describe('runs outside that a newer one of their group supersedes', () => {
  it('are cancelled as soon as they can be read, and none of them goes on', () => {
    const { world, ids } = waitingBacklog(30, grouped);
    world.storeIsAway = true;
    const { id } = world.create(superseding);
    world.settle();
    world.answerReads();
    world.storeIsAway = false;
    for (let turn = 0; turn < 5; turn++) {
      world.later(1_000);
      world.answerReads();
      world.settle();
      world.project();
    }
    expect(world.load.liveRuns).toBe(1);
    world.session('r1-s', { credits: 40 });
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([id]);
    for (const superseded of ids) expect(eventsOf(world, superseded)).toContain('run_cancelled');
  });

  it('P6: are cancelled by the next owner where theirs is gone before it could read them', () => {
    const { world, ids } = waitingBacklog(30, grouped);
    const { id } = world.create(superseding);
    world.settle();
    const events = world.appended.flatMap(({ commit }) => commit.runs).filter((run) => run.id === id);
    const newest = LiveRun.restore(
      id,
      definitions.find(superseding).definition,
      { events: events.flatMap((run) => [...run.events]), sequence: 1 },
      settings,
    );
    const documents = ids.map((run) => world.documents.get(run));
    const runs = ids.flatMap((run, index) => {
      const history = documents[index];
      const state = [...world.partition.liveRuns].find((live) => live.id === run)?.state;
      if (history === undefined || state?.status === 'CANCELLED') return [];
      const { definition } = definitions.find(grouped);
      return [LiveRun.restore(run, definition, { events: [...history.events], sequence: 1 }, settings)];
    });
    const next = new Harness({ runs: [...runs, newest] });
    next.session('r1-s', { credits: 40 });
    next.settle();
    expect(next.jobs.map(({ message }) => message.runId)).toEqual([id]);
  });
});

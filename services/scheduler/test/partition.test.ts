import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const chain = text([stage('a'), stage('b', { after: ['a'] })]);

describe('decide, commit, act (P1)', () => {
  it('nothing is answered, shown or sent before the commit is acknowledged', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { replies } = world.create(one);
    expect([replies.length, world.shown.length, world.jobs.length]).toEqual([0, 0, 0]);
    world.acknowledge();
    expect(replies).toMatchObject([{ ok: true, created: true, epoch: 7 }]);
    expect(world.shown).toEqual(['run_created', 'stages_queued', 'stage_started']);
    expect(world.jobs).toMatchObject([
      { runner: 'r1', message: { stage: 'a', attempt: 1, session: 'r1-s', credit: 1, repeated: false } },
    ]);
  });

  it('one commit is under way at a time; what is decided meanwhile joins the next', () => {
    const world = new Harness();
    for (let index = 0; index < 3; index++) world.create(one);
    expect(world.appended).toHaveLength(1);
    world.acknowledge();
    expect(world.appended).toHaveLength(2);
    expect(world.appended[1]).toMatchObject({ expectedSequence: 101, commit: { number: 3, epoch: 7 } });
    expect(world.appended[1]?.commit.runs).toHaveLength(2);
  });

  it('the completed stage and the next grant are one commit (P16)', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(chain);
    world.settle();
    const { replies } = world.result(world.job(0), 'success', { scheduler: 'me', credit: 2 });
    expect(replies).toEqual([]);
    expect(world.acknowledge().runs[0]?.events.map(({ type }) => type)).toEqual([
      'stage_completed',
      'stages_queued',
      'stage_started',
    ]);
    expect(replies).toEqual([{ ok: true, answer: 'committed', epoch: 7, offerTaken: true }]);
  });

  it('a closed partition answers and sends nothing, whatever comes back', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { replies } = world.create(one);
    world.settle();
    world.partition.close();
    world.jobs[0]?.answer('refused');
    expect(world.inFlight).toBe(0);
    expect(world.create(one).replies).toEqual([]);
    expect(replies).toHaveLength(1);
    expect(world.load.liveRuns).toBe(0);
  });

  it('leaves nothing of what runners execute for it when it is closed, and all of what they execute for others', () => {
    const world = new Harness();
    const { lengths, keySlots } = world.dispatch;
    const elsewhere = { name: 'of another partition', beganAt: 0 };
    lengths.runs('r1', new Set([elsewhere]));
    world.session('r1-s', { credits: 2 });
    world.create(one);
    world.create(one);
    world.settle();
    world.result(world.job(0));
    world.settle();
    expect([lengths.runningOn(['r1']).length, keySlots.total]).toEqual([2, 1]);
    world.partition.close();
    expect([lengths.runningOn(['r1']), keySlots.total]).toEqual([[elsewhere], 0]);
  });

  it("a partition that is being handed over takes no grants, of others' matching either", () => {
    const world = new Harness();
    world.create(one);
    world.settle();
    let released = false;
    world.partition.release(() => {
      released = true;
    });
    expect(released).toBe(true);
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 1, attempts: [] });
    world.dispatch.addCredits(world.boot, { runner: 'r1', session: 'r1-s', credits: [1] });
    world.dispatch.match(world.boot);
    expect(world.inFlight).toBe(0);
  });
});

describe('ids live once (P7)', () => {
  it('creating twice is the same run, answered after its commit', () => {
    const world = new Harness();
    const { id } = world.create(one);
    const again = world.create(one, { id });
    expect(again.replies).toEqual([]);
    world.settle();
    expect(again.replies).toMatchObject([{ ok: true, created: false, run: { id } }]);
    expect(world.events().filter((type) => type === 'run_created')).toHaveLength(1);
  });

  it("another's run under the same id is a conflict", () => {
    const world = new Harness();
    const { id } = world.create(one);
    expect(world.create(one, { id, key: 'eve' }).replies).toMatchObject([{ ok: false, code: 'CONFLICT' }]);
  });

  it.each([
    ['older than an hour', HOUR_MS + 1, 2 * HOUR_MS],
    ['older than the opening plus a minute', 0, 30_000],
  ])('an id %s asks the store', (_what, ageMs, openForMs) => {
    const world = new Harness();
    world.now += openForMs;
    world.create(one, { id: world.id({ ageMs }) });
    expect(world.askedStore).toHaveLength(1);
  });

  it('P7: an id that an earlier owner can have created asks the store, however far ahead its client or its clock was', () => {
    const earlier = new Harness();
    earlier.now += 2 * HOUR_MS;
    const { id } = earlier.create(text([]), { id: earlier.id({ ageMs: -5 * 60_000 }) });
    earlier.settle();
    const world = new Harness({ idsTo: earlier.partition.idsTo });
    world.now += 2 * HOUR_MS + 10 * 60_000;
    world.stored = true;
    expect(world.create(text([]), { id }).replies).toMatchObject([{ ok: true, created: false }]);
    world.create(one, { id: world.id() });
    expect(world.askedStore).toEqual([id]);
  });

  it('a young id is created at once; one of a closed run is known without the store', () => {
    const world = new Harness();
    world.now += 2 * HOUR_MS;
    const { id } = world.create(text([]));
    expect(world.askedStore).toEqual([]);
    world.settle();
    world.project();
    expect([...world.partition.liveRuns]).toEqual([]);
    expect(world.create(one, { id }).replies).toMatchObject([{ ok: true, created: false, run: null }]);
  });

  it("without the store's answer nothing is created", () => {
    const world = new Harness();
    world.stored = 'unavailable';
    expect(world.create(one).replies).toMatchObject([{ ok: false, code: 'UNAVAILABLE' }]);
    expect(world.inFlight).toBe(0);
  });

  it('the result of an attempt that lives no more is obsolete, said only by an owner who is sure', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    const message = world.job(0);
    world.result(message);
    world.settle();
    expect(world.result(message).replies).toMatchObject([{ answer: 'obsolete' }]);
    world.mayAct = false;
    expect(world.result(message).replies).toEqual([]);
  });
});

describe('the limit of an owner (P4)', () => {
  it('reads, denies and grants nothing when its renewal is too old', () => {
    const world = new Harness();
    const { id } = world.create(one);
    world.settle();
    world.mayAct = false;
    world.session('r1-s', { credits: 1 });
    const said: unknown[] = [];
    const say = (reply: unknown): void => void said.push(reply);
    world.partition.get({ runIds: [id] }, say);
    world.partition.watch({ runId: id, after: 0 }, say);
    world.partition.openRuns({ runIds: [id] }, say);
    world.partition.cancel({ runId: world.id(), tenants: ['ada'] }, say);
    world.create(one, { id }).replies.forEach(say);
    expect(said).toEqual([]);
    expect(world.inFlight).toBe(0);
  });

  it('a stop for an attempt that it does not know is not its to send', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(one);
    world.settle();
    const foreign = { runId: id, stage: 'a', attempt: 2, session: 'r1-s', credit: 9 };
    world.mayAct = false;
    world.session('r1-s', { attempts: [foreign] });
    expect(world.stops).toEqual([]);
    world.mayAct = true;
    world.session('r1-s', { attempts: [foreign] });
    expect(world.stops).toMatchObject([{ message: foreign }]);
  });
});

describe('memory (P6)', () => {
  it('a run leaves when it has settled and its end is behind the checkpoint', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(one);
    world.settle();
    world.project();
    expect(world.load.liveRuns).toBe(1);
    world.result(world.job(0));
    world.settle();
    const taken = world.partition.takeDirty(10);
    world.partition.projected(
      world.partition.sequence - 1,
      taken.map(({ run }) => run),
    );
    expect(world.load.liveRuns).toBe(1);
    world.partition.projected(world.partition.sequence, []);
    expect(world.load.liveRuns).toBe(0);
    expect(world.released).toEqual([`r1/${id}`]);
  });

  it('a cancelled run stays until its attempt is gone', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(one);
    world.settle();
    const said: unknown[] = [];
    world.partition.cancel({ runId: id, tenants: ['ada'] }, (reply) => void said.push(reply));
    world.settle();
    expect(said).toMatchObject([{ ok: true, cancelledStages: 1, run: { status: 'CANCELLED' } }]);
    world.project();
    expect(world.load.liveRuns).toBe(1);
    world.stops[0]?.answer('gone');
    world.settle();
    world.project();
    expect(world.load.liveRuns).toBe(0);
  });

  it('what the store did not take is written again', () => {
    const world = new Harness();
    world.create(one);
    world.settle();
    const taken = world.partition.takeDirty(10).map(({ run }) => run);
    expect(world.partition.dirtyRuns).toBe(0);
    world.partition.stillDirty(taken);
    expect(world.partition.dirtyRuns).toBe(1);
  });

  it.each([
    ['the journal is nearly full', { journalUsed: 0.8 }],
    ['the store is too far behind', { unprojectedBytes: 256 * 1024 * 1024 }],
    ['too many runs are live', { liveRuns: 1_000 }],
  ])('new runs are refused while %s', (message, load) => {
    const world = new Harness();
    Object.assign(world.load, load);
    expect(world.create(one).replies).toMatchObject([
      { ok: false, code: 'UNAVAILABLE', message, retryAfterSecs: expect.any(Number) },
    ]);
  });

  it('no grants from 95 % of the journal, results always (P8)', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    world.create(one);
    world.settle();
    world.load.journalUsed = 0.95;
    world.credit('r1-s', 'r1', 2);
    expect(world.jobs).toHaveLength(1);
    const { replies } = world.result(world.job(0));
    world.settle();
    expect(replies).toMatchObject([{ answer: 'committed' }]);
    expect(world.jobs).toHaveLength(1);
    world.load.journalUsed = 0.94;
    world.partition.creditsChanged();
    world.settle();
    expect(world.jobs).toHaveLength(2);
  });

  it("a bad pipeline is the sender's mistake", () => {
    expect(new Harness().create('stages: [').replies).toMatchObject([{ ok: false, code: 'BAD_USER_INPUT' }]);
  });
});

describe('concurrency groups', () => {
  const grouped = (cancelInProgress = false): string =>
    text([stage('a')], { concurrency: { group: ['main'], cancelInProgress } });

  it('runs go one at a time in the order of their creation, the next in the same commit', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 3 });
    const [first, second, third] = [world.create(grouped()), world.create(grouped()), world.create(grouped())];
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id]);
    world.result(world.job(0));
    const commit = world.acknowledge();
    expect(commit.runs.map(({ id }) => id)).toEqual([first.id, second.id]);
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, second.id]);
    expect(third.id).not.toBe(second.id);
  });

  it('cancel_in_progress ends those before it, and waits until their processes are gone', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 5 });
    const first = world.create(grouped());
    const second = world.create(grouped());
    world.settle();
    const third = world.create(grouped(true));
    world.settle();
    expect(world.events().filter((type) => type === 'run_admitted')).toEqual([]);
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id]);
    world.stops[0]?.answer('gone');
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, third.id]);
    expect(second.replies).toMatchObject([{ ok: true }]);
  });

  it('cancel_in_progress before which very many wait ends them in several turns, and none of them goes on meanwhile', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 200 } });
    world.session('r1-s', { credits: 200 });
    const before = Array.from({ length: 100 }, () => world.create(grouped()).id);
    world.settle();
    const { id } = world.create(grouped(true));
    world.settle();
    const cancelled = (): string[] =>
      world.appended.flatMap(({ commit }) =>
        commit.runs.filter(({ events }) => events.some(({ type }) => type === 'run_cancelled')).map((run) => run.id),
      );
    expect(cancelled().toSorted()).toEqual(before.slice(-40).toSorted());
    expect(world.partition.nextWake()).toBe(world.boot);
    world.partition.tick();
    world.settle();
    expect(cancelled().toSorted()).toEqual(before.slice(-80).toSorted());
    // The turn of the next one comes: it is none of those that still wait to be cancelled.
    world.result(world.job(0));
    world.settle();
    expect(cancelled().toSorted()).toEqual(before.slice(1).toSorted());
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([before[0], id]);
  });

  it('runs of one millisecond keep their order at a take-over', () => {
    const world = new Harness();
    // Ids that would sort the other way round.
    const ids = [world.id(), world.id()].toReversed();
    for (const id of ids) world.create(grouped(), { id });
    world.settle();
    const runs = [...world.partition.liveRuns].toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
    expect(runs.map(({ state }) => state.createdAt)).toEqual([NOW, NOW + 1]);
    const successor = new Harness({ runs: runs.toReversed() });
    successor.session('r1-s', { credits: 2 });
    successor.settle();
    expect(successor.jobs.map(({ message }) => message.runId)).toEqual([ids[0]]);
  });

  it('a run whose turn had come when its owner died is admitted by the next', () => {
    const created = createdOf(grouped(), { group: 'main' });
    const [, held] = [
      createdOf(grouped(), { group: 'main' }),
      created.restored([{ type: 'run_held', at: NOW, reason: 'group' }]),
    ];
    const world = new Harness({ runs: [held] });
    world.session('r1-s', { credits: 1 });
    world.settle();
    expect(world.events()).toContain('run_admitted');
    expect(world.jobs).toHaveLength(1);
  });
});

describe('take-over', () => {
  const started = {
    type: 'stage_started',
    at: NOW,
    stage: 'a',
    attempt: 1,
    runner: 'r1',
    session: 'r1-s',
    credit: 3,
  } as const;
  const queued = { type: 'stages_queued', at: NOW, stages: ['a'] } as const;

  it('grants without a known answer are repeated to their own session, never offered to others (P12)', () => {
    const world = new Harness({ start: false });
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 1, attempts: [] });
    world.start({ sequence: 100, commitNumber: 1, runs: [createdOf(one).restored([queued, started])] });
    world.session('r2-s', { credits: 1 });
    world.later(2_000);
    expect(world.jobs).toMatchObject([{ runner: 'r1', message: { session: 'r1-s', credit: 3, repeated: true } }]);
    world.jobs[0]?.answer('no-responders');
    world.settle();
    expect(world.events()).toEqual([]);
    world.later(2_000);
    world.jobs[1]?.answer('refused');
    world.settle();
    expect(world.events()).toEqual(['stage_returned', 'stage_started']);
  });

  it('an attempt whose session has no lease any more is lost (P5)', () => {
    const world = new Harness({ runs: [createdOf(one).restored([queued, started])] });
    world.settle();
    expect(world.events()).toEqual(['stage_completed', 'run_completed']);
  });

  it("a cancelled run's attempt is stopped again (P14)", () => {
    const world = new Harness({ start: false });
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 1, attempts: [] });
    world.start({
      sequence: 100,
      commitNumber: 1,
      runs: [createdOf(one).restored([queued, started, { type: 'run_cancelled', at: NOW, cancelledStages: 1 }])],
    });
    expect(world.stops).toHaveLength(1);
    expect(world.jobs).toHaveLength(0);
  });

  it('deadlines are taken up from the journal: a retry that is due is queued', () => {
    const retried = text([stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] } })]);
    const world = new Harness({
      runs: [
        createdOf(retried).restored([
          queued,
          started,
          { type: 'stage_retrying', at: NOW, stage: 'a', attempt: 1, reason: 'exit', logBytes: 0, dueAt: NOW + 1_000 },
        ]),
      ],
    });
    expect(world.partition.nextWake()).toBe(world.boot + 1_000);
    world.later(1_000);
    world.settle();
    expect(world.events()).toEqual(['stages_queued']);
  });

  it('a run that cannot be restored is quarantined, its attempts stopped after that is committed', () => {
    const world = new Harness({ start: false });
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 1, attempts: [] });
    world.start({ sequence: 100, commitNumber: 1, runs: [createdOf(one).unrestorable([queued, started])] });
    expect(world.stops).toEqual([]);
    world.settle();
    expect(world.events()).toEqual(['run_quarantined']);
    world.stops[0]?.answer('gone');
    world.settle();
    world.project();
    expect(world.load.liveRuns).toBe(0);
  });

  it('a run that cannot be restored is quarantined also when its turn in a group comes before', () => {
    const grouped = text([stage('a')], { concurrency: { group: ['main'], cancelInProgress: false } });
    const first = createdOf(grouped, { group: 'main' }).unrestorable([queued]);
    const held = createdOf(grouped, { group: 'main', at: NOW + 1 }).unrestorable([
      { type: 'run_held', at: NOW, reason: 'group' },
    ]);
    const world = new Harness({ runs: [first, held] });
    world.settle();
    expect(world.events()).toEqual(['run_quarantined', 'run_stopped', 'run_quarantined', 'run_stopped']);
  });

  it('a run that ended before it could not be restored ends no second time', () => {
    const world = new Harness({
      runs: [createdOf(one).unrestorable([queued, { type: 'run_cancelled', at: NOW, cancelledStages: 1 }])],
    });
    world.settle();
    expect(world.events()).toEqual([]);
    world.project();
    expect(world.load.liveRuns).toBe(0);
  });

  it('what makes the machine throw fails its run, and the result that showed it ends its attempt', () => {
    // Of a text of its own: runs of one text share what it means.
    const poisoned = stage('poisoned');
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(text([poisoned]));
    world.settle();
    const [run] = [...world.partition.liveRuns];
    Object.defineProperty(run?.plan.stages[0]?.definition, 'retry', {
      get: () => {
        throw new TypeError('poison');
      },
    });
    world.result(world.job(0), 'failed');
    world.settle();
    expect(world.events().slice(-3)).toEqual(['run_quarantined', 'attempt_gone', 'run_stopped']);
  });
});

describe('workspaces (P19)', () => {
  it('the stages of a run stay on the runner of the first, until that has been gone for long', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(chain);
    world.settle();
    world.result(world.job(0));
    world.settle();
    world.session('r2-s', { credits: 1 });
    expect(world.jobs).toHaveLength(1);
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.later(14_000);
    expect(world.jobs).toHaveLength(1);
    world.later(2_000);
    world.settle();
    expect(world.jobs[1]).toMatchObject({ runner: 'r2' });
    expect(world.events()).toContain('workspace_lost');
  });

  it('a runner that comes back with a new session keeps them', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(chain);
    world.settle();
    world.result(world.job(0));
    world.settle();
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.session('r1-t', { runner: 'r1', credits: 1 });
    world.later(60_000);
    world.settle();
    expect(world.jobs[1]).toMatchObject({ runner: 'r1', message: { session: 'r1-t' } });
    expect(world.events()).not.toContain('workspace_lost');
  });
});

describe('reading (PARTITION-3)', () => {
  it('a read of a run whose decisions are ahead waits for their commit', () => {
    const world = new Harness();
    const { id } = world.create(one);
    world.settle();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    const said: { runs: readonly { status: string }[] }[] = [];
    world.partition.get({ runIds: [id] }, (reply) => {
      if (reply.ok) said.push(reply);
    });
    expect(said).toEqual([]);
    world.settle();
    expect(said[0]?.runs).toMatchObject([{ status: 'CANCELLED' }]);
  });

  it('watching answers the events after a version, contiguous', () => {
    const world = new Harness();
    const { id } = world.create(one);
    world.settle();
    const said: unknown[] = [];
    world.partition.watch({ runId: id, after: 1 }, (reply) => void said.push(reply));
    world.partition.watch({ runId: world.id(), after: 0 }, (reply) => void said.push(reply));
    expect(said).toMatchObject([
      { ok: true, run: { version: 2, events: [{ type: 'stages_queued' }], more: false } },
      { ok: true, run: null },
    ]);
  });

  it("another tenant's run does not exist", () => {
    const world = new Harness();
    const { id } = world.create(one);
    world.settle();
    const said: unknown[] = [];
    world.partition.cancel({ runId: id, tenants: ['eve'] }, (reply) => void said.push(reply));
    expect(said).toMatchObject([{ ok: false, code: 'NOT_FOUND' }]);
  });
});

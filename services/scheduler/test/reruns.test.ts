/** Reruns (P30), as the owner of a partition makes them and goes on with them. */
import { describe, expect, it } from 'vitest';
import type { CreateReply, CreateRequest, Job } from '@penstock/bus';
import { isAdopting } from '@penstock/run';
import { LiveRun } from '@penstock/scheduler/testing';
import { definitions, Harness, settings, stage, text } from './support.ts';

const SHIP = text([
  stage('build', { outputs: ['v'] }),
  stage('test', { after: ['build'] }),
  stage('ship', { after: ['test'] }),
]);

/** Of a run whose `build` has succeeded and whose `test` has failed. */
function failed(harness: Harness, yaml = SHIP, more: Partial<CreateRequest> = {}): string {
  const { id } = harness.create(yaml, { origin: { kind: 'api', actor: 'ada' }, ...more });
  harness.settle();
  finish(harness, id, 'build');
  finish(harness, id, 'test', 'failed');
  return id;
}

let credits = 0;

/** Grants what the run waits for, and ends it. */
function finish(harness: Harness, runId: string, name: string, status: 'success' | 'failed' = 'success'): Job {
  harness.credit('r1-s', 'r1', ++credits);
  harness.settle();
  const sent = harness.jobs.findLast(({ message }) => message.runId === runId && message.stage === name);
  if (sent === undefined) throw new Error(`'${name}' was not granted`);
  sent.answer('accepted');
  harness.result(sent.message, status);
  harness.settle();
  return sent.message;
}

function rerun(
  harness: Harness,
  parent: string,
  wish: Partial<NonNullable<CreateRequest['rerun']>> = {},
  more: Partial<Omit<CreateRequest, 'rerun'>> & { readonly id?: string } = {},
): { readonly id: string; readonly replies: CreateReply[] } {
  const { yaml = SHIP, ...rest } = more;
  return harness.create(yaml, { origin: { kind: 'api', actor: 'bob' }, ...rest, rerun: { parent, ...wish } });
}

function world(options: ConstructorParameters<typeof Harness>[0] = {}): Harness {
  const harness = new Harness(options);
  harness.session('r1-s');
  return harness;
}

function live(harness: Harness, id: string): LiveRun {
  const run = [...harness.bare.liveRuns].find((one) => one.id === id);
  if (run === undefined) throw new Error('the run is not in memory');
  return run;
}

const code = ([reply]: readonly CreateReply[]): string | undefined =>
  reply === undefined ? undefined : reply.ok ? 'ok' : reply.code;

describe('P30: a rerun', () => {
  it('adopts what has succeeded in one commit with its creation, and grants only what is to run', () => {
    const harness = world();
    const parent = failed(harness);
    const before = structuredClone(live(harness, parent).events);
    const { id, replies } = rerun(harness, parent, { onlyFailed: true });
    expect(replies).toEqual([]);
    const { runs } = harness.acknowledge();
    expect(runs.map((entry) => [entry.id, entry.events.map(({ type }) => type)])).toEqual([
      [id, ['run_created', 'stages_adopted', 'stages_queued']],
    ]);
    expect(replies).toMatchObject([
      { ok: true, created: true, run: { lineage: { parent, root: parent, actors: ['ada'] }, actor: 'bob' } },
    ]);
    finish(harness, id, 'test');
    finish(harness, id, 'ship');
    expect(live(harness, id).state.status).toBe('SUCCESS');
    expect(harness.jobs.filter(({ message }) => message.runId === id).map(({ message }) => message.stage)).toEqual([
      'test',
      'ship',
    ]);
    // Nothing is written to the parent.
    expect(live(harness, parent).events).toEqual(before);
  });

  it('is refused of a run that nobody has approved: its code would run unseen (P27)', () => {
    const harness = world();
    const pullRequest = { number: 7, branch: 'main', fork: true, sequence: 1 };
    const origin = {
      kind: 'webhook',
      provider: 'git_host_a',
      repository: 'acme/demo',
      ref: 'refs/pull/7/head',
      commit: 'a',
    };
    const { id: parent } = harness.create(SHIP, {
      origin: { ...origin, kind: 'webhook', pullRequest },
      held: 'approval',
    });
    harness.settle();
    const { replies } = rerun(harness, parent);
    harness.settle();
    expect(code(replies)).toBe('CONFLICT');
    harness.partition.approve({ runId: parent, tenants: ['ada'], by: 'grace' }, () => {});
    harness.settle();
    const approved = rerun(harness, parent);
    harness.settle();
    expect(code(approved.replies)).toBe('ok');
  });

  it('of a run without stages is what its delivery means now, and speaks for the repository as before', () => {
    const harness = world();
    const origin = { kind: 'webhook', provider: 'git_host_a', repository: 'a/b', commit: 'c', trusted: false } as const;
    const ended = { pipelineName: 'a/b', status: 'FAILED', reason: 'pipeline_file' } as const;
    const { id: root } = harness.create('', { ended, origin: { ...origin, actor: 'ada' } });
    harness.settle();
    const again = { origin: { ...origin, actor: 'bob', trusted: true } };
    const { id: between } = rerun(harness, root, {}, { ...again, ended, yaml: '' });
    harness.settle();
    const { id, replies } = rerun(harness, between, {}, again);
    harness.settle();
    expect(code(replies)).toBe('ok');
    const { lineage, origin: own } = live(harness, id).state;
    expect(lineage).toMatchObject({ parent: between, root, actors: ['ada', 'bob'] });
    expect(lineage?.edited).toBeUndefined();
    // Trust does not rise.
    expect(own).toMatchObject({ actor: 'bob', trusted: false, repository: 'a/b' });
    expect(live(harness, id).state.stages.map(({ status }) => status)).toEqual(['QUEUED', 'PENDING', 'PENDING']);
  });

  it('of a rerun has the same root, and knows all who began its lineage', () => {
    const harness = world();
    const root = failed(harness);
    const { id: second } = rerun(harness, root);
    harness.settle();
    const { id: third, replies } = rerun(harness, second, {}, { origin: { kind: 'api', actor: 'carol' } });
    harness.settle();
    expect(replies).toMatchObject([{ ok: true, run: { lineage: { parent: second, root, actors: ['ada', 'bob'] } } }]);
    expect(live(harness, third).state.origin.actor).toBe('carol');
  });

  it('is for the request that asked for it, not for that of its parent', () => {
    const harness = world();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const first = { kind: 'api', actor: 'ada', requestId: 'r-1', traceparent } as const;
    const { id: parent } = harness.create(SHIP, { origin: first });
    harness.settle();
    const { id: second } = rerun(harness, parent, {}, { origin: { kind: 'api', actor: 'bob', requestId: 'r-2' } });
    const { id: third } = rerun(harness, parent);
    harness.settle();
    expect(live(harness, second).state.origin).toEqual({ kind: 'api', actor: 'bob', requestId: 'r-2' });
    expect(live(harness, third).state.origin).toEqual({ kind: 'api', actor: 'bob' });
  });

  it('reads its parent from the store once that has left memory, and is UNAVAILABLE where that is away', () => {
    const harness = world();
    const parent = failed(harness);
    harness.project();
    expect([...harness.bare.liveRuns]).toEqual([]);
    const first = rerun(harness, parent, { onlyFailed: true });
    harness.storeIsAway = true;
    harness.answerReads();
    expect(code(first.replies)).toBe('UNAVAILABLE');
    harness.storeIsAway = false;
    const second = rerun(harness, parent, { onlyFailed: true }, { id: first.id });
    harness.answerReads();
    harness.settle();
    expect(code(second.replies)).toBe('ok');
    expect(live(harness, first.id).state.stages.get(0)).toMatchObject({ status: 'SUCCESS', adopted: true });
  });

  it('is refused for a run that is nowhere, of another tenant, with nothing to run, or of another pipeline', () => {
    const harness = world();
    const parent = failed(harness);
    const nowhere = rerun(harness, harness.id());
    harness.answerReads();
    expect(code(nowhere.replies)).toBe('NOT_FOUND');
    const { id: ofEve } = harness.create(SHIP, { key: 'eve' });
    harness.settle();
    expect(code(rerun(harness, ofEve).replies)).toBe('NOT_FOUND');
    harness.partition.cancel({ runId: ofEve, tenants: ['ada'] }, () => {});
    expect(code(rerun(harness, parent, { from: ['nobody'] }).replies)).toBe('BAD_USER_INPUT');
    const other = text([stage('build')], { name: 'other' });
    expect(code(rerun(harness, parent, {}, { yaml: other }).replies)).toBe('BAD_USER_INPUT');
    const { id: whole } = harness.create(text([stage('build')]));
    harness.settle();
    finish(harness, whole, 'build');
    expect(code(rerun(harness, whole, { onlyFailed: true }, { yaml: text([stage('build')]) }).replies)).toBe(
      'CONFLICT',
    );
    harness.settle();
  });

  it('asked for twice with one id is one run', () => {
    const harness = world();
    const parent = failed(harness);
    harness.project();
    const first = rerun(harness, parent, { onlyFailed: true });
    const second = rerun(harness, parent, { onlyFailed: true }, { id: first.id });
    harness.answerReads();
    harness.settle();
    expect([code(first.replies), code(second.replies)]).toEqual(['ok', 'ok']);
    expect([first.replies, second.replies].map(([reply]) => reply?.ok === true && reply.created)).toEqual([
      true,
      false,
    ]);
  });

  it('with another file speaks for no repository any more, and neither does a rerun of it', () => {
    const harness = world();
    const parent = failed(harness);
    const edited = text([stage('build', { outputs: ['v'] }), stage('test', { after: ['build'], timeoutMs: 1_000 })]);
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: edited });
    harness.settle();
    expect(live(harness, id).state.lineage).toMatchObject({ edited: true });
    expect(live(harness, id).state.stages.get(0)).toMatchObject({ adopted: true });
    const { id: again } = rerun(harness, id, {}, { yaml: edited });
    harness.settle();
    expect(live(harness, again).state.lineage).toMatchObject({ edited: true, root: parent });
  });

  it('waits for its live parent in their group, and does not cancel it', () => {
    const harness = world();
    const grouped = text([stage('build'), stage('test', { after: ['build'] })], {
      concurrency: { group: ['one'], cancelInProgress: true },
    });
    const { id: parent } = harness.create(grouped);
    harness.settle();
    finish(harness, parent, 'build');
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: grouped });
    harness.settle();
    expect(live(harness, id).state).toMatchObject({ held: true, status: 'QUEUED' });
    expect(live(harness, id).state.stages.get(0)).toMatchObject({ adopted: true });
    finish(harness, parent, 'test');
    expect(live(harness, parent).state.status).toBe('SUCCESS');
    finish(harness, id, 'test');
    expect(live(harness, id).state.status).toBe('SUCCESS');
  });

  it('cancels none of the runs that it was made from, also where one between them is over, and other reruns of them it does', () => {
    const harness = world();
    const inGroup = (group: string): string =>
      text([stage('build')], { concurrency: { group: [group], cancelInProgress: true } });
    const [one, two] = [inGroup('one'), inGroup('two')];
    const isLive = (id: string): boolean => [...harness.bare.liveRuns].some((run) => run.id === id && !run.ended);
    const { id: root } = harness.create(one);
    harness.settle();
    const { id: other } = rerun(harness, root, {}, { yaml: one });
    // In a group of its own it is over soon.
    const { id: between } = rerun(harness, root, {}, { yaml: two });
    harness.settle();
    harness.partition.cancel({ runId: between, tenants: ['ada'] }, () => {});
    harness.settle();
    const { id: last } = rerun(harness, between, {}, { yaml: one });
    harness.settle();
    expect(live(harness, last).state.lineage).toMatchObject({ parent: between, root, live: [root] });
    expect(isLive(root)).toBe(true);
    expect(isLive(other)).toBe(false);
    const { id: leaf } = rerun(harness, last, {}, { yaml: one });
    harness.settle();
    expect(live(harness, leaf).state.lineage?.live).toEqual([last, root]);
    expect([root, last].map(isLive)).toEqual([true, true]);
    // A run that was made of none of them has no reason to wait.
    harness.create(one);
    harness.settle();
    expect([root, last, leaf].map(isLive)).toEqual([false, false, false]);
  });

  it('has its inputs from its parent, and those that are given on top', () => {
    const harness = world();
    const input = { type: 'string', description: '', required: false, options: [] } as const;
    const inputs = ['a', 'b'].map((name) => ({ ...input, name, variable: `INPUT_${name.toUpperCase()}` }));
    const yaml = text([stage('build'), stage('test', { after: ['build'] })], { inputs });
    const given = [
      ['a', '1'],
      ['b', '2'],
    ] as const;
    const parent = failed(harness, yaml, { inputs: given });
    const { id } = rerun(harness, parent, {}, { yaml, inputs: [['b', '3']] });
    harness.settle();
    expect(live(harness, id).state.inputs).toEqual({ a: '1', b: '3' });
  });
});

describe('P30: what a rerun takes over in several commits', () => {
  const MANY = text([
    ...Array.from({ length: 6 }, (_, index) => stage(`s${index}`, { outputs: ['v'] })),
    stage('last', { after: Array.from({ length: 6 }, (_, index) => `s${index}`) }),
  ]);

  /** Outputs of so many bytes in JSON that each event holds one stage's. */
  function large(harness: Harness): string {
    const { id } = harness.create(MANY);
    harness.settle();
    for (let index = 0; index < 6; index++) {
      harness.credit('r1-s', 'r1', ++credits);
      harness.settle();
      const job = harness.job(harness.jobs.length - 1);
      const { runId, stage: name, attempt, session, credit } = job;
      const request = { runId, stage: name, attempt, session, credit, status: 'success', logBytes: 1 } as const;
      harness.partition.result({ ...request, outputs: { v: '\u0001'.repeat(60_000) } }, 'r1', () => {});
      harness.settle();
    }
    finish(harness, id, 'last', 'failed');
    return id;
  }

  it('is granted nothing before the last of them is stored', () => {
    const harness = world();
    const parent = large(harness);
    const { id, replies } = rerun(harness, parent, { onlyFailed: true }, { yaml: MANY });
    harness.credit('r1-s', 'r1', ++credits);
    let commits = 0;
    for (; isAdopting(live(harness, id).state); commits++) {
      expect(harness.jobs.some(({ message }) => message.runId === id)).toBe(false);
      expect(harness.appended.every(({ bytes }) => bytes < 900 * 1024)).toBe(true);
      harness.acknowledge();
    }
    expect(commits).toBeGreaterThan(3);
    harness.settle();
    expect(code(replies)).toBe('ok');
    expect(harness.jobs.at(-1)?.message).toMatchObject({ runId: id, stage: 'last' });
  });

  it('is told to watchers in pages that fit a message', () => {
    const harness = world();
    const parent = large(harness);
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: MANY });
    harness.settle();
    const told: string[] = [];
    for (let more = true; more;) {
      more = false;
      harness.partition.watch({ runId: id, after: told.length }, (reply) => {
        if (!reply.ok || reply.run === null) throw new Error('the run cannot be watched');
        expect(Buffer.byteLength(JSON.stringify(reply))).toBeLessThan(1024 * 1024);
        told.push(...reply.run.events.map(({ type }) => type));
        more = reply.run.more;
      });
    }
    expect(told).toEqual(live(harness, id).events.map(({ type }) => type));
  });

  /** The same run in the memory of another owner, which knows only what was committed by then. */
  function takenOver(harness: Harness, id: string, parentIsThere: boolean, parent: string): Harness {
    const events = harness.appended
      .slice(0, harness.appended.length - harness.inFlight)
      .flatMap(({ commit }) => commit.runs.filter((run) => run.id === id).flatMap((run) => run.events));
    const definition = definitions.find(MANY).definition;
    const run = LiveRun.restore(id, definition, { events: structuredClone(events), sequence: 90 }, settings);
    const next = new Harness({ runs: [run], start: false });
    if (parentIsThere) next.documents.set(parent, { events: live(harness, parent).events, sequence: 80 });
    next.start({ sequence: 100, commitNumber: 1, runs: [run] });
    next.session('r1-s');
    return next;
  }

  it('goes on where it was, whoever takes it over, and whatever the store does meanwhile', () => {
    const harness = world();
    const parent = large(harness);
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: MANY });
    harness.acknowledge();
    harness.acknowledge();
    const next = takenOver(harness, id, true, parent);
    next.storeIsAway = true;
    next.answerReads();
    expect(isAdopting(live(next, id).state)).toBe(true);
    next.storeIsAway = false;
    next.later(1_000);
    next.answerReads();
    next.credit('r1-s', 'r1', ++credits);
    next.settle();
    expect(isAdopting(live(next, id).state)).toBe(false);
    finish(next, id, 'last');
    expect(live(next, id).state.status).toBe('SUCCESS');
  });

  it('ends FAILED where its parent is nowhere', () => {
    const harness = world();
    const parent = large(harness);
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: MANY });
    harness.acknowledge();
    const next = takenOver(harness, id, false, parent);
    next.answerReads();
    next.settle();
    expect(live(next, id).state).toMatchObject({ status: 'FAILED', reason: 'parent' });
    expect(next.jobs).toEqual([]);
  });

  it('adopts no more once it is cancelled', () => {
    const harness = world();
    const parent = large(harness);
    const { id } = rerun(harness, parent, { onlyFailed: true }, { yaml: MANY });
    harness.acknowledge();
    harness.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    harness.settle();
    const types = live(harness, id).events.map(({ type }) => type);
    expect(types.lastIndexOf('stages_adopted')).toBeLessThan(types.indexOf('run_cancelled'));
    expect(live(harness, id).state.status).toBe('CANCELLED');
  });
});

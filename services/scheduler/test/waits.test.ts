/** What a run waits for, as its owner says: a scenario for each kind, with holder and position. */
import type { StageDefinition } from '@penstock/pipeline';
import type { RunWaits, Wait } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const grouped = text([stage('a')], { concurrency: { group: ['deploy'], cancelInProgress: false } });
const UNLIMITED = 2_147_483_647;
const ONE_PLACE = { limits: { pipelineRunLimit: UNLIMITED, maxConcurrent: 1 } };

function ask(world: Harness, id: string, tenants: readonly string[] = ['ada']): RunWaits {
  const answers: RunWaits[] = [];
  world.partition.waits({ runIds: [id], tenants }, (reply) => {
    if (reply.ok) answers.push(...reply.runs);
  });
  const [answer] = answers;
  if (answer === undefined) throw new Error('the partition did not answer');
  return answer;
}

function ofStage(waits: RunWaits, name: string): readonly Wait[] {
  return waits.stages?.find(([stageName]) => stageName === name)?.[1] ?? [];
}

/** How often all sessions were gone through since. */
function countingSessions({ dispatch: { queues } }: Harness): () => number {
  let looks = 0;
  const { sessions } = queues;
  Object.assign(queues, { sessions: { values: () => ((looks += 1), sessions.values()) } });
  return () => looks;
}

describe('what a run waits for', () => {
  it('is nothing once it has ended, nor for what is executed', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(one);
    world.settle();
    expect(ask(world, id)).toMatchObject({ waits: [], stages: [] });
    world.result(world.job(0));
    world.settle();
    expect(ask(world, id)).toMatchObject({ waits: [], stages: [] });
  });

  it('dependency: the stage that runs, and until when as earlier runs tell', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const yaml = text([stage('build'), stage('test', { after: ['build'] })]);
    const { id: first } = world.create(yaml);
    world.settle();
    expect(ofStage(ask(world, first), 'test')).toEqual([
      { kind: 'dependency', holder: 'build', since: NOW, message: "It comes after 'build'." },
    ]);
    expect(ask(world, first).waits).toMatchObject([{ kind: 'dependency', holder: 'build' }]);
    world.later(10_000);
    world.result(world.job(0));
    world.settle();
    const { id } = world.create(yaml);
    world.settle();
    world.later(4_000);
    expect(ofStage(ask(world, id), 'test')).toMatchObject([{ kind: 'dependency', holder: 'build', etaMs: 6_000 }]);
  });

  it('quota: the oldest run that has a place, and the place among those that wait; every stage says the same', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const ids = [1, 2, 3].map(() => world.create(one, ONE_PLACE).id);
    world.settle();
    const [second, third] = [ask(world, ids[1] ?? ''), ask(world, ids[2] ?? '')];
    expect(second.waits).toMatchObject([{ kind: 'quota', holder: ids[0], position: 1 }]);
    expect(third.waits).toMatchObject([{ kind: 'quota', holder: ids[0], position: 2 }]);
    expect(third).not.toHaveProperty('stages');
    world.later(10_000);
    world.result(world.job(0));
    world.settle();
    expect(ask(world, ids[2] ?? '').waits).toMatchObject([
      { kind: 'quota', holder: ids[1], position: 1, etaMs: 10_000 },
    ]);
  });

  it('concurrency: the run of its group that goes on', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const ids = [1, 2, 3].map(() => world.create(grouped).id);
    world.settle();
    expect(ask(world, ids[1] ?? '').waits).toMatchObject([{ kind: 'concurrency', holder: ids[0], position: 1 }]);
    expect(ask(world, ids[2] ?? '').waits).toMatchObject([{ kind: 'concurrency', holder: ids[0], position: 2 }]);
  });

  it('concurrency: the stage of its matrix that goes on, under max_parallel', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 4 });
    const cells = ['t (1)', 't (2)', 't (3)'].map((name): StageDefinition =>
      stage(name, { matrix: { of: 't', values: {}, failFast: false, maxParallel: 1 } }),
    );
    const { id } = world.create(text(cells));
    world.settle();
    const waits = ask(world, id);
    expect(ofStage(waits, 't (1)')).toEqual([]);
    expect(ofStage(waits, 't (2)')).toMatchObject([{ kind: 'concurrency', holder: 't (1)', position: 1 }]);
    expect(ofStage(waits, 't (3)')).toMatchObject([{ kind: 'concurrency', holder: 't (1)', position: 2 }]);
  });

  it('runner: the place in the order in which slots are given, and until when as earlier stages tell', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    world.later(10_000);
    world.result(world.job(0));
    world.settle();
    const ids = [1, 2, 3].map(() => world.create(one).id);
    world.settle();
    expect(ids.map((id) => ask(world, id).waits[0]?.position)).toEqual([1, 2, 3]);
    expect(ask(world, ids[0] ?? '').waits).toMatchObject([{ kind: 'runner', etaMs: 0, since: NOW + 10_000 }]);
    world.partition.cancel({ runId: ids[0] ?? '', tenants: ['ada'] }, () => {});
    world.settle();
    expect(ids.slice(1).map((id) => ask(world, id).waits[0]?.position)).toEqual([1, 2]);
  });

  it('runner: keys take turns, and higher priority goes first', () => {
    const world = new Harness();
    world.session('r1-s');
    const ada = [1, 2, 3].map(() => world.create(one, { key: 'ada' }).id);
    const eve = [1, 2].map(() => world.create(one, { key: 'eve' }).id);
    world.settle();
    const positions = (ids: readonly string[]): unknown[] => ids.map((id) => ask(world, id).waits[0]?.position);
    expect([positions(ada), positions(eve)]).toEqual([
      [1, 3, 5],
      [2, 4],
    ]);
    const urgent = world.create(one, { key: 'eve', priority: 5 });
    world.settle();
    const all = [urgent.id, ...ada, ...eve];
    const placed = all.map((id, index) => ({ id, position: positions(all)[index] as number }));
    const told = placed.toSorted((a, b) => a.position - b.position).map(({ id }) => id);
    world.credit('r1-s', 'r1', 1, 2, 3, 4, 5, 6);
    world.settle();
    expect(told[0]).toBe(urgent.id);
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(told);
  });

  it('runner: of one key what has waited for longest goes first, whatever it asks for', () => {
    const world = new Harness();
    world.session('r1-s', { labels: ['gpu'] });
    const labelled = text([stage('a', { runsOn: ['gpu'] })]);
    const ids = [one, one, labelled, one, labelled].map((yaml) => {
      world.later(1_000);
      const { id } = world.create(yaml);
      world.settle();
      return id;
    });
    expect(ids.map((id) => ask(world, id).waits[0]?.position)).toEqual([1, 2, 3, 4, 5]);
    world.credit('r1-s', 'r1', 1, 2, 3, 4, 5);
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids);
  });

  it('no_runner: which label is missing where', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1, labels: ['linux'] });
    const { id } = world.create(text([stage('a', { runsOn: ['linux', 'gpu'] })]));
    world.settle();
    expect(ask(world, id).waits).toEqual([
      { kind: 'no_runner', since: NOW, message: "No runner has the label 'gpu': 'r1' lacks 'gpu'." },
    ]);
    world.session('r2-s', { credits: 1, labels: ['gpu'] });
    expect(ask(world, id).waits).toMatchObject([
      {
        message: "No runner has all of the labels 'gpu', 'linux' together: 'r1' lacks 'gpu', 'r2' lacks 'linux'.",
      },
    ]);
  });

  it("runner and no_runner: of a tenant's own runners that tenant alone is told, and nobody else's stages stand before its own there", () => {
    const world = new Harness();
    const own = `fr_${'a'.repeat(32)}`;
    const entry = { labels: ['gpu'], untrusted: false, tenant: 'ada' };
    world.dispatch.fleetChanged({ kind: 'put', key: own, value: entry, revision: 1 });
    const gpu = text([stage('a', { runsOn: ['gpu'] })]);
    const eves = [1, 2].map(() => world.create(gpu, { tenant: 'eve', key: 'eve' }).id);
    world.session('own-s', { runner: own, labels: ['gpu'] });
    const adas = [1, 2].map(() => world.create(gpu).id);
    world.settle();
    expect(adas.map((id) => ask(world, id).waits[0])).toMatchObject([
      { kind: 'runner', position: 1, message: expect.stringContaining('None of the 4 slots that could take it') },
      { kind: 'runner', position: 2 },
    ]);
    expect(ask(world, eves[0] ?? '', ['eve']).waits).toEqual([
      { kind: 'no_runner', since: NOW, message: 'No runner is connected.' },
    ]);
    world.session('r1-s', { labels: ['linux'] });
    expect(ask(world, eves[0] ?? '', ['eve']).waits).toMatchObject([
      { message: "No runner has the label 'gpu': 'r1' lacks 'gpu'." },
    ]);
    world.session('r2-s', { labels: ['gpu'] });
    expect(eves.map((id) => ask(world, id, ['eve']).waits[0]?.kind)).toEqual(['runner', 'runner']);
    world.dispatch.sessionGone('own-s');
    world.dispatch.sessionGone('r2-s');
    expect(ask(world, adas[0] ?? '').waits).toMatchObject([
      { kind: 'no_runner', message: "No runner has the label 'gpu': 'r1' lacks 'gpu'." },
    ]);
  });

  it('no_runner: the runner with its working folder is away', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(text([stage('a'), stage('b', { after: ['a'] })]));
    world.settle();
    world.result(world.job(0));
    world.settle();
    expect(ask(world, id).waits).toMatchObject([{ kind: 'runner', position: 1 }]);
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    expect(ask(world, id).waits).toMatchObject([
      { kind: 'no_runner', message: "The runner 'r1', which has the run's working folder, is not connected." },
    ]);
  });

  it('approval: of a gate whom it asks, of a run from a fork that somebody approves it', () => {
    const world = new Harness();
    const approval = { quorum: 2, timeoutMs: HOUR_MS, preventSelf: false, approvers: ['alice', 'bob'] };
    const gate = stage('gate', { commands: [], approval });
    const { id } = world.create(text([gate, stage('ship', { after: ['gate'] })]));
    const pullRequest = { number: 1, branch: 'main', fork: true };
    const origin = {
      kind: 'webhook',
      repository: 'o/r',
      ref: 'refs/pull/1',
      provider: 'git_host_a',
      pullRequest,
    } as const;
    const fork = world.create(one, { held: 'approval', origin });
    world.settle();
    const message = expect.stringContaining('the approval of alice, bob (0 of 2 so far)');
    expect(ask(world, id).waits).toMatchObject([{ kind: 'approval', message }]);
    expect(ofStage(ask(world, id), 'ship')).toMatchObject([{ kind: 'dependency', holder: 'gate' }]);
    expect(ask(world, fork.id).waits).toMatchObject([{ kind: 'approval' }]);
  });

  it('backoff: until the next attempt may begin', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const retry = { max: 2, backoff: 'constant', delayMs: 60_000, on: ['failure'] } as const;
    const { id } = world.create(text([stage('a', { retry })]));
    world.settle();
    world.result(world.job(0), 'failed');
    world.settle();
    world.later(20_000);
    expect(ask(world, id).waits).toMatchObject([{ kind: 'backoff', etaMs: 40_000 }]);
  });

  it('store and broker: what stands in the way of all is told first', () => {
    const world = new Harness();
    world.session('r1-s');
    const { id } = world.create(one);
    world.settle();
    world.load.journalUsed = 0.96;
    expect(ask(world, id).waits.map(({ kind }) => kind)).toEqual(['store', 'runner']);
    world.load.journalUsed = 0;
    world.create(one);
    world.later(3_000);
    expect(ask(world, id).waits.map(({ kind }) => kind)).toEqual(['broker', 'runner']);
  });

  it('WAITS-1: of stages that ask for as many sizes, all for the same runners, each queue is looked at once', () => {
    const world = new Harness();
    world.session('r1-s');
    const sizes = 60;
    const { id } = world.create(
      text(
        Array.from({ length: sizes }, (_, index) =>
          stage(`s${index}`, { workspace: 'fresh', place: { resources: { memoryBytes: 2 ** 20 + index } } }),
        ),
      ),
    );
    world.settle();
    const { queues } = world.dispatch;
    const looks = { isPaused: 0, passOf: 0 };
    for (const name of ['isPaused', 'passOf'] as const) {
      const look = queues[name].bind(queues) as (...of: unknown[]) => never;
      queues[name] = (...of: unknown[]) => {
        looks[name] += 1;
        return look(...of);
      };
    }
    const waits = ask(world, id);
    expect(waits.stages?.map(([, [wait]]) => wait?.position)).toEqual(
      Array.from({ length: sizes }, (_, index) => index + 1),
    );
    expect(looks.isPaused).toBe(sizes);
    // At each entry and at each pick, and not at all others for each pick.
    expect(looks.passOf).toBeLessThan(5 * sizes);
  });

  it('WAITS-1: of stages that ask for as many sizes that no runner has, the runners are gone through once', () => {
    const world = new Harness();
    const capacity = { cpu: 1, memoryBytes: 2 ** 30 };
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 1, attempts: [], capacity });
    const sizes = [2, 3, 4].map((gib) =>
      stage(`s${gib}`, { workspace: 'fresh', place: { resources: { memoryBytes: gib * 2 ** 30 } } }),
    );
    const { id } = world.create(text(sizes));
    world.settle();
    const looks = countingSessions(world);
    expect(ask(world, id).stages?.map(([, [wait]]) => wait?.message)).toEqual(
      [2, 3, 4].map((gib) => `No runner with its labels is as large as it asks for (${gib} GiB of memory).`),
    );
    expect(looks()).toBe(1);
  });

  it('WAITS-1: of stages that ask for as many labels that no runner has, no more runners are looked at than may be for one answer', () => {
    const world = new Harness();
    for (let index = 0; index < 300; index++) world.session(`r${index}-s`, { runner: `r${index}` });
    const stages = 500;
    const { id } = world.create(
      text(
        Array.from({ length: stages }, (_, index) => stage(`s${index}`, { workspace: 'fresh', runsOn: [`l${index}`] })),
      ),
    );
    world.settle();
    const looks = countingSessions(world);
    const messages = ask(world, id).stages?.map(([, [wait]]) => wait?.message) ?? [];
    expect(messages[0]).toContain("No runner has the label 'l0'");
    expect(messages.at(-1)).toBe('No runner that is connected has all that it asks for.');
    expect(messages).toHaveLength(stages);
    expect(looks()).toBeLessThan(stages);
  });

  it('WAITS-1: runs before which very many wait are told of in several answers', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 2_000 } });
    Object.assign(world.load, { liveRunsMax: 2_000 });
    const ids = Array.from({ length: 1_100 }, () => world.create(one, ONE_PLACE).id);
    world.settle();
    const told = new Map<string, unknown>();
    let asks = 0;
    for (let rest: readonly string[] = ids.slice(-50); rest.length > 0; asks += 1)
      world.partition.waits({ runIds: rest, tenants: ['ada'] }, (reply) => {
        if (!reply.ok) throw new Error(reply.message);
        for (const run of reply.runs) told.set(run.id, run.waits[0]?.position);
        rest = reply.rest ?? [];
      });
    expect(asks).toBeGreaterThan(1);
    expect([...told]).toEqual(ids.slice(-50).map((id, index) => [id, 1_050 + index]));
  });

  it('names no other run to who asks with another tenant', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const [first, second] = [1, 2].map(() => world.create(grouped).id);
    world.settle();
    const told = ask(world, second ?? '', ['eve']);
    expect(told.waits).toMatchObject([{ kind: 'concurrency', position: 1 }]);
    expect(JSON.stringify(told)).not.toContain(first);
  });
});

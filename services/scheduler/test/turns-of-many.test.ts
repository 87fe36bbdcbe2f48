/** Of very many runs that may go on, or are superseded, at one moment: what others of the scheduler ask for has its turn between them. */
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

const grouped = (cancelInProgress: boolean): string =>
  text([stage('a')], { concurrency: { group: ['main'], cancelInProgress } });
const one = text([stage('a')]);
const limited = (maxConcurrent: number) => ({ limits: { maxConcurrent, pipelineRunLimit: 1_000 } as never });
const MANY = 300;
/** What is told of it in the turn in which it happens. */
const AT_ONCE_MAX = 100;

function statuses(world: Harness): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { state } of world.partition.liveRuns) counts[state.status] = (counts[state.status] ?? 0) + 1;
  return counts;
}

/** Turn after turn, until nothing is left for the next. */
function goOn(world: Harness): void {
  while ((world.partition.nextWake() ?? Infinity) <= world.boot) world.later(0);
  world.settle();
}

const roomy = (): Harness => new Harness({ settings: { liveRunsPerKeyMax: 1_000 } });

describe('SLOTS-6', () => {
  it('superseded runs are cancelled in the turns that follow where the holder of their group ends meanwhile', () => {
    const world = roomy();
    world.session('r1-s', { credits: 4 });
    world.create(grouped(false));
    world.settle();
    for (let run = 0; run < MANY; run += 1) world.create(grouped(false));
    const { id } = world.create(grouped(true));
    world.settle();
    const before = statuses(world)['CANCELLED'] ?? 0;
    expect(before).toBeLessThan(AT_ONCE_MAX);
    world.result(world.job(0));
    expect((statuses(world)['CANCELLED'] ?? 0) - before).toBeLessThan(AT_ONCE_MAX);
    goOn(world);
    expect(statuses(world)).toMatchObject({ CANCELLED: MANY });
    expect(world.job(1)).toMatchObject({ runId: id });
  });

  it('runs for whose limit there is more room go on in the turns that follow, in their order, and one of another key at once', () => {
    const world = roomy();
    const ids = Array.from({ length: MANY }, () => world.create(one, limited(1)).id);
    world.settle();
    expect(statuses(world)).toEqual({ PENDING: 1, QUEUED: MANY - 1 });
    const last = world.create(one, limited(1_000)).id;
    world.settle();
    expect(statuses(world)['PENDING']).toBeLessThan(AT_ONCE_MAX);
    const { replies } = world.create(one, { key: 'bob', tenant: 'bob' });
    world.settle();
    expect(replies).toMatchObject([{ ok: true, run: { status: 'PENDING' } }]);
    goOn(world);
    expect(statuses(world)).toEqual({ PENDING: MANY + 2 });
    const admitted = world.appended.flatMap(({ commit }) =>
      commit.runs.flatMap(({ id, events }) => (events.some(({ type }) => type === 'run_admitted') ? [id] : [])),
    );
    expect(admitted).toEqual([...ids.slice(1), last]);
  });
});

it('DEADLINES-2: of very many runs whose waits are over at one moment those of other keys have their turn among them', () => {
  const world = new Harness({ settings: { liveRunsPerKeyMax: 1_000, queueTimeoutMs: 60_000 } });
  for (let run = 0; run < MANY; run += 1) world.create(one);
  world.later(1);
  const { id } = world.create(one, { key: 'bob', tenant: 'bob' });
  world.settle();
  world.later(60_000);
  expect(statuses(world)['FAILED']).toBeLessThan(AT_ONCE_MAX);
  const ofBob = [...world.partition.liveRuns].find((run) => run.id === id);
  expect(ofBob?.state.status).toBe('FAILED');
  goOn(world);
  expect(statuses(world)).toEqual({ FAILED: MANY + 1 });
});

it('P27: very many runs of older heads are cancelled before a new one is created, the last of them in its commit: no owner finds it beside them', () => {
  const world = roomy();
  const head = (sequence: number) => {
    const pullRequest = { number: 7, branch: 'main', fork: false, sequence };
    const of = { provider: 'git_host_a', repository: 'acme/demo', ref: 'refs/pull/7/head', commit: `c${sequence}` };
    return { origin: { kind: 'webhook', ...of, pullRequest } } as const;
  };
  for (let sequence = 1; sequence <= 2 * MANY; sequence += 1)
    world.create(one, { ...head(sequence), keepsSuperseded: true });
  world.settle();
  const { id, replies } = world.create(one, head(2 * MANY + 1));
  const cancelled: number[] = [];
  for (;;) {
    const { runs } = world.acknowledge();
    cancelled.push(runs.filter(({ events }) => events.some(({ type }) => type === 'run_cancelled')).length);
    if (runs.some((run) => run.id === id)) break;
    expect(replies).toEqual([]);
  }
  expect(cancelled).toEqual([255, 255, 90]);
  expect(replies).toMatchObject([{ ok: true, created: true }]);
  expect(statuses(world)).toEqual({ CANCELLED: 2 * MANY, PENDING: 1 });
});

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

it('P27: very many runs of older heads are cancelled in the turns that follow, and as many as its commit takes with the new head', () => {
  const world = roomy();
  const head = (sequence: number) => {
    const pullRequest = { number: 7, branch: 'main', fork: false, sequence };
    const of = { provider: 'git_host_a', repository: 'acme/demo', ref: 'refs/pull/7/head', commit: `c${sequence}` };
    return { origin: { kind: 'webhook', ...of, pullRequest } } as const;
  };
  for (let sequence = 1; sequence <= 2 * MANY; sequence += 1)
    world.create(one, { ...head(sequence), keepsSuperseded: true });
  world.settle();
  const { id } = world.create(one, head(2 * MANY + 1));
  const { runs } = world.acknowledge();
  expect([runs.some((run) => run.id === id), runs.length]).toEqual([true, 256]);
  expect(statuses(world)['CANCELLED']).toBeLessThan(MANY);
  goOn(world);
  expect(statuses(world)).toEqual({ CANCELLED: 2 * MANY, PENDING: 1 });
});

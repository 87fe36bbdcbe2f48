/** What happens to a runner, and what becomes of the runs that had stages on it (P19). */
import type { RunEvent } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { RunnerRuns } from '../src/partition/runner-runs.ts';
import type { LiveRun } from '../src/run/live-run.ts';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

const linux = { runsOn: ['linux'] };
const chain = text([stage('a', linux), stage('b', { ...linux, after: ['a'] })]);

/** The first stage has run on r1, which has the labels; the second waits for it. */
function halfRun(): Harness {
  const world = new Harness();
  world.session('r1-s', { credits: 1, labels: ['linux'] });
  world.create(chain);
  world.settle();
  world.result(world.job(0));
  world.settle();
  return world;
}

describe('a runner that comes back with other labels', () => {
  it('P19: gives up the workspaces whose stages it cannot run any more: they go on elsewhere, from a fresh checkout', () => {
    const world = halfRun();
    world.session('r2-s', { credits: 1, labels: ['linux'] });
    world.session('r1-t', { credits: 1, labels: ['mac'] });
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.later(1_000);
    world.settle();
    expect(world.events()).toContain('workspace_lost');
    expect(world.jobs[1]).toMatchObject({ runner: 'r2', message: { stage: 'b' } });
  });

  it('P19: keeps them while an earlier session of it, which has them, may still live', () => {
    const world = halfRun();
    world.session('r2-s', { credits: 1, labels: ['linux'] });
    world.session('r1-t', { credits: 1, labels: ['mac'] });
    world.later(1_000);
    world.settle();
    expect(world.events()).not.toContain('workspace_lost');
  });

  it('P19: keeps the workspaces of other labels', () => {
    const world = halfRun();
    world.session('r1-t', { credits: 1, labels: ['linux', 'mac'] });
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.later(1_000);
    world.settle();
    expect(world.events()).not.toContain('workspace_lost');
    expect(world.jobs[1]).toMatchObject({ runner: 'r1', message: { session: 'r1-t' } });
  });

  it('P19: is found out by a take-over too', () => {
    const world = new Harness({ start: false });
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-t', labels: ['mac'], slots: 1, attempts: [] });
    const started = {
      type: 'stage_started',
      at: NOW,
      stage: 'a',
      attempt: 1,
      runner: 'r1',
      session: 'r1-s',
      credit: 1,
    } as const;
    world.start({
      sequence: 100,
      commitNumber: 1,
      runs: [
        createdOf(chain).restored([
          { type: 'stages_queued', at: NOW, stages: ['a'] },
          started,
          { type: 'stage_completed', at: NOW, stage: 'a', attempt: 1, status: 'SUCCESS', logBytes: 0 },
          { type: 'stages_queued', at: NOW, stages: ['b'] },
        ]),
      ],
    });
    world.later(1_000);
    expect(world.events()).toEqual(['workspace_lost']);
  });
});

describe('a runner that is gone for good', () => {
  it('P5: loses the attempts of its session turn after turn, and all of them before it rests', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 1_000 } });
    const mine = 250;
    world.session('r1-s', { credits: mine });
    for (let run = 0; run < mine; run++) world.create(text([stage('a')]));
    world.settle();
    const ended = (): number => world.events().filter((type) => type === 'stage_completed').length;
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.settle();
    expect(ended()).toBeGreaterThan(0);
    expect(ended()).toBeLessThan(mine);
    expect(world.partition.nextWake()).toBe(world.boot);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) {
      world.partition.tick();
      world.settle();
    }
    expect(ended()).toBe(mine);
  });

  it('P19: costs its own runs one turn after the other, and no other run anything', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 1_000 } });
    const mine = 250;
    world.session('r1-s', { credits: mine, labels: ['linux'] });
    for (let run = 0; run < mine; run++) world.create(chain);
    world.settle();
    for (let job = 0; job < mine; job++) world.result(world.job(job));
    world.settle();
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    const lost = (): number => world.events().filter((type) => type === 'workspace_lost').length;
    world.later(16_000);
    world.settle();
    expect(lost()).toBeGreaterThan(0);
    expect(lost()).toBeLessThan(mine);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) world.partition.tick();
    world.settle();
    expect(lost()).toBe(mine);
  });
});

it('P19: a closed run is released where its stages ran, also when each had a workspace of its own', () => {
  const world = new Harness();
  world.session('r1-s', { credits: 1 });
  const { id } = world.create(text([stage('a', { workspace: 'fresh' })]));
  world.settle();
  world.result(world.job(0));
  world.settle();
  world.project();
  expect(world.released).toEqual([`r1/${id}`]);
});

describe('RUNNERRUNS-3: of runners that are lost at one moment', () => {
  const MANY = 3_000;
  const started = (runner: string) => [{ type: 'stage_started', runner } as RunEvent];
  const runOf = (id: string) => ({ id, plan: { stages: [] }, state: { workspaces: {} } }) as unknown as LiveRun;

  /** Ada has many runners of its own, each with many runs; everybody's is r0, with one run. */
  function lostRunners(): RunnerRuns {
    const tenantOf = (runner: string): string | undefined => (runner === 'r0' ? undefined : 'ada');
    const runs = new RunnerRuns({ hasRunner: () => false, lacks: () => false, tenantOf });
    for (let index = 0; index < MANY; index += 1) runs.happened(runOf(`ada${index}`), started(`r${1 + (index % 300)}`));
    runs.happened(runOf('bob'), started('r0'));
    return runs;
  }

  it('those of one tenant have one turn together: the attempts of others are lost among theirs', () => {
    const runs = lostRunners();
    for (let runner = 300; runner >= 0; runner -= 1) runs.sessionLost(`s${runner}`, `r${runner}`);
    const lost: string[] = [];
    const lose = ({ id }: LiveRun): boolean => lost.push(id) > 0;
    expect(runs.lookOnAtSessions(4, lose)).toBe(4);
    expect(lost).toContain('bob');
    while (runs.isBusy) runs.lookOnAtSessions(40, lose);
    expect(new Set(lost).size).toBe(MANY + 1);
  });

  it('their workspaces are given up likewise, each once however often it is said', () => {
    const runs = lostRunners();
    for (let runner = 300; runner >= 0; runner -= 1) runs.away(`r${runner}`);
    for (let runner = 300; runner >= 0; runner -= 1) runs.away(`r${runner}`);
    const lost: string[] = [];
    runs.lookOn(MANY / 5, ({ id }) => lost.push(id));
    expect(lost).toContain('bob');
    while (runs.isBusy) runs.lookOn(40, ({ id }) => lost.push(id));
    expect(lost.toSorted()).toEqual([...Array.from({ length: MANY }, (_, index) => `ada${index}`), 'bob'].toSorted());
  });
});

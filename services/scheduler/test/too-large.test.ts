/** What is too large for a message or a commit is the affair of its run alone: the partition and its other runs go on. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RUN_OUTPUTS_MAX } from '@penstock/run';
import { Harness, stage, text } from './support.ts';

/** Of one commit on the wire (P1): the broker's limit for a payload. */
const PAYLOAD_BYTES_MAX = 1024 * 1024;

function bytesOf(world: Harness): number[] {
  return world.appended.map(({ bytes }) => bytes);
}

describe('too much for a message', () => {
  it('P1: a run whose stages cannot be named in one commit is refused when it is created', () => {
    const world = new Harness();
    // 250 characters of three bytes, as the longest names that a matrix makes.
    const stages = Array.from({ length: 2_000 }, (_, index) => stage(`${'雪'.repeat(245)}${index}`));
    expect(world.create(text(stages)).replies).toMatchObject([{ ok: false, code: 'BAD_USER_INPUT' }]);
    expect(world.appended).toEqual([]);
    expect(world.load.liveRuns).toBe(0);
  });

  it('P1: outputs beyond what a stage may have fail the stage, and every commit can be sent', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 2 });
    world.create(text([stage('a'), stage('b', { after: ['a'] })]));
    const other = world.create(text([stage('c')]), { key: 'bob' });
    world.settle();
    const job = world.job(world.jobs.findIndex(({ message }) => message.stage === 'a'));
    const replies: unknown[] = [];
    const { runId, attempt, session, credit } = job;
    world.partition.result(
      {
        runId,
        stage: 'a',
        attempt,
        session,
        credit,
        status: 'success',
        outputs: { v: '\u0001'.repeat(RUN_OUTPUTS_MAX / 4) },
        logBytes: 0,
      },
      'r1',
      (reply) => void replies.push(reply),
    );
    world.settle();
    expect(replies).toMatchObject([{ ok: true, answer: 'committed' }]);
    expect(Math.max(...bytesOf(world))).toBeLessThan(PAYLOAD_BYTES_MAX);
    expect(world.events().slice(-3)).toEqual(['stage_completed', 'stages_skipped', 'run_completed']);
    expect([...world.partition.liveRuns].find(({ id }) => id === other.id)?.state.status).toBe('RUNNING');
  });

  it('P1: 2,000 stages of the longest names that fit are skipped with their text in one commit', () => {
    const world = new Harness();
    const root = stage('root', { when: { kind: 'literal', value: false } });
    const noise = Array.from({ length: 40 }, (_, index) => [`E${index}`, [randomBytes(4_500).toString('base64')]]);
    const others = Array.from({ length: 1_999 }, (_, index) =>
      stage(`${'n'.repeat(200)}-${index}`, { after: [index === 0 ? 'root' : `${'n'.repeat(200)}-${index - 1}`] }),
    );
    const run = world.create(text([{ ...root, env: Object.fromEntries(noise) }, ...others]));
    expect(Math.max(...bytesOf(world))).toBeGreaterThan(600 * 1024);
    world.settle();
    expect(run.replies).toMatchObject([{ ok: true }]);
    expect(world.events()).toEqual(['run_created', 'stages_skipped', 'stages_skipped', 'run_completed']);
    expect(Math.max(...bytesOf(world))).toBeLessThan(PAYLOAD_BYTES_MAX);
  });

  it('P12: a job whose values fill no message fails its stage, and the grants behind it in the same commit are sent', () => {
    const world = new Harness();
    const output = { expression: { kind: 'path', path: ['stages', 'a', 'outputs', 'v'] } } as const;
    const env = Object.fromEntries(
      Array.from({ length: 256 }, (_, index) => [`E${index}`, Array.from({ length: 100 }, () => output)]),
    );
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(text([stage('a', { outputs: ['v'] }), stage('b', { after: ['a'], env })]));
    world.settle();
    const { runId, attempt, session, credit } = world.job(0);
    world.partition.result(
      {
        runId,
        stage: 'a',
        attempt,
        session,
        credit,
        status: 'success',
        outputs: { v: 'x'.repeat(64 * 1024 - 1) },
        logBytes: 0,
      },
      'r1',
      () => {},
    );
    world.create(text([stage('c')]), { key: 'bob' });
    world.credit('r1-s', 'r1', 2, 3);
    world.settle();
    expect(world.jobs.map(({ message }) => message.stage)).toEqual(['a', 'c']);
    const state = [...world.partition.liveRuns].find((run) => run.id === id)?.state;
    expect(state).toMatchObject({ status: 'FAILED' });
    expect([...(state?.stages ?? [])]).toMatchObject([{ status: 'SUCCESS' }, { status: 'FAILED', reason: 'quota' }]);
  });

  it('P19: the folders of tens of thousands of runs are released in as many messages as carry them', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 40_000 } });
    Object.assign(world.load, { liveRunsMax: 40_000 });
    const runs = 1_100;
    world.session('r1-s');
    for (let index = 0; index < runs; index++) {
      world.create(text([stage('a')]));
      world.credit('r1-s', 'r1', index + 1);
      world.settle();
      world.result(world.job(index));
      world.settle();
    }
    world.project();
    expect(world.released).toHaveLength(runs);
    expect(Math.max(...world.releases)).toBeLessThanOrEqual(1_000);
  });
});

import { describe, expect, it } from 'vitest';
import {
  evolve,
  newRun,
  planOf,
  RUN_DOCUMENT_BYTES_MAX,
  RUN_OUTPUTS_MAX,
  STAGE_OUTPUTS_MAX,
  viewOf,
  type RunCreated,
} from '@penstock/run';
import { DrivenRun, failure, matrix, pipeline, RUN_ID, stage } from './support.ts';

/** Where the store refuses a document. */
const STORE_BYTES_MAX = 32 * 1024 * 1024;
const tenRetries = { max: 10, backoff: 'constant', delayMs: 1_000, on: ['failure', 'lost', 'timeout'] } as const;

/** As the store has it: the state with all events, and the view beside it. */
function documentBytes({ run, events }: DrivenRun): number {
  return jsonBytes({ state: run, events }) + jsonBytes(viewOf(run));
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Every attempt of every stage fails, until the run has ended. */
/** Without an end of their own the tests are to fail, not to hang. */
const ROUNDS_MAX = 50;
const GRANTS_MAX = 10_000;

function failUntilTheEnd(driven: DrivenRun): number {
  let rounds = 0;
  for (; driven.run.finishedAt === undefined && rounds < ROUNDS_MAX; rounds++) {
    const waiting = driven.queued();
    for (const name of waiting) driven.grant(name);
    for (const name of waiting) driven.fail(name);
    driven.tell({ type: 'wake' });
  }
  return rounds;
}

function refold(driven: DrivenRun): DrivenRun['run'] {
  const plan = planOf(driven.definition);
  const [created, ...rest] = driven.events;
  const folded = newRun(RUN_ID, created as RunCreated, plan);
  for (const event of rest) evolve(folded, event);
  return folded;
}

/** A grant that comes to nothing, again and again, until the stage waits no more. */
function returnUntilItEnds(driven: DrivenRun, name: string): number {
  let grants = 0;
  for (; driven.stage(name).status === 'QUEUED' && grants < GRANTS_MAX; grants++) {
    driven.grant(name);
    driven.tell({ type: 'return-grant', stage: name, attempt: driven.stage(name).attempt });
  }
  return grants;
}

describe('the room of a document (ROOM-1, ROOM-2)', () => {
  it('2,000 stages with long names that fail 11 times each end FAILED with reason quota before the store refuses them', () => {
    const stages = Array.from({ length: 2_000 }, (_, index) =>
      stage(`${'n'.repeat(250)}-${index}`, { retry: tenRetries, allowFailure: true }),
    );
    const driven = new DrivenRun(pipeline(...stages));
    const rounds = failUntilTheEnd(driven);
    expect(driven.run).toMatchObject({ status: 'FAILED', reason: 'quota', openStages: 0, liveAttempts: 0 });
    expect(rounds).toBeGreaterThan(5);
    expect(new Set(driven.run.stages.map(({ reason }) => reason))).toEqual(new Set(['quota']));
    const bytes = documentBytes(driven);
    expect(bytes).toBeGreaterThan(STORE_BYTES_MAX / 2);
    expect(bytes).toBeLessThan(RUN_DOCUMENT_BYTES_MAX);
    expect(driven.run.eventBytes).toBeGreaterThanOrEqual(jsonBytes(driven.events.slice(1)));
    expect(refold(driven)).toEqual(driven.run);
  });

  it('2,000 stages with names of a usual length have all of their 11 attempts', () => {
    const driven = new DrivenRun(pipeline(...matrix('test', 2_000, { failFast: false, retry: tenRetries })));
    expect(failUntilTheEnd(driven)).toBe(11);
    expect(driven.run).toMatchObject({ status: 'FAILED', openStages: 0 });
    expect(driven.run.reason).toBeUndefined();
    expect(driven.stage('test (n=7)')).toMatchObject({ reason: 'exit', attempt: 11 });
    expect(refold(driven)).toEqual(driven.run);
  });

  it('all outputs that a run of 2,000 stages may have fit, each character escaped in JSON', () => {
    const driven = new DrivenRun(pipeline(...matrix('test', 2_000)));
    const full = new Set(driven.queued().slice(-RUN_OUTPUTS_MAX / STAGE_OUTPUTS_MAX));
    for (const name of driven.queued()) {
      driven.grant(name);
      driven.succeed(name, full.has(name) ? { v: '\u0001'.repeat(STAGE_OUTPUTS_MAX - 1) } : {});
    }
    expect(driven.run.status).toBe('SUCCESS');
    expect(documentBytes(driven)).toBeLessThan(RUN_DOCUMENT_BYTES_MAX);
  });

  it('a stage whose grants come to nothing without end fails with reason quota, and the others have their attempt', () => {
    const long = 'n'.repeat(20_000);
    const after = { after: [long] };
    const driven = new DrivenRun(
      pipeline(
        stage(long),
        stage('other', { retry: tenRetries }),
        stage('next', after),
        stage('cleanup', { ...after, runsAfterFailure: true, when: failure }),
      ),
    );
    expect(returnUntilItEnds(driven, long)).toBeGreaterThan(100);
    expect(driven.statuses()).toEqual({ [long]: 'FAILED', other: 'QUEUED', next: 'SKIPPED', cleanup: 'QUEUED' });
    expect(driven.stage(long)).toMatchObject({ reason: 'quota' });
    expect(driven.stage(long).live).toBeUndefined();
    driven.grant('other');
    driven.fail('other');
    expect(driven.stage('other')).toMatchObject({ status: 'FAILED', reason: 'quota', attempt: 1, exitCode: 1 });
    driven.grant('cleanup');
    driven.succeed('cleanup');
    expect(driven.run).toMatchObject({ status: 'FAILED', reason: 'quota' });
    expect(documentBytes(driven)).toBeLessThan(RUN_DOCUMENT_BYTES_MAX);
  });

  it('outputs for which there is no room left fail their stage with reason quota; without any it succeeds', () => {
    const long = 'n'.repeat(20_000);
    const driven = new DrivenRun(pipeline(stage(long, { allowFailure: true }), stage('a'), stage('b')));
    returnUntilItEnds(driven, long);
    for (const name of ['a', 'b']) driven.grant(name);
    driven.succeed('a');
    driven.succeed('b', { v: '1' });
    expect(driven.statuses()).toEqual({ [long]: 'FAILED', a: 'SUCCESS', b: 'FAILED' });
    expect(driven.stage('b')).toMatchObject({ reason: 'quota' });
    expect(driven.run).toMatchObject({ status: 'FAILED', reason: 'quota' });
  });
});

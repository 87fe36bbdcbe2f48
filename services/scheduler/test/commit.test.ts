import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunCreated, RunEvent } from '@penstock/run';
import {
  COMMIT_FORMAT,
  decodeCommit,
  encodeCommit,
  UnreadableCommit,
  type CommitHead,
} from '@penstock/scheduler/testing';
import { CommitBuilder } from '../src/partition/commit-builder.ts';
import { COMMIT_BYTES_MAX, COMMIT_RUNS_MAX, DECISION_BYTES_MAX, encodeEvent } from '../src/run/commit.ts';
import { createdOf } from './restored-runs.ts';
import { NOW, stage, text } from './support.ts';

const head: CommitHead = {
  id: 'c1',
  kind: 'runs',
  partition: 3,
  epoch: 7,
  number: 12,
  owner: 'me',
  minReader: COMMIT_FORMAT,
  at: NOW,
};
const created = (yaml: string): RunCreated => ({
  type: 'run_created',
  at: NOW,
  tenant: 't',
  key: 'k',
  pipelineName: 'p',
  yaml,
  priority: 0,
  origin: { kind: 'api' },
});

describe("a commit's bytes", () => {
  it('are read back as they were written, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 400 }), (piece, times) => {
        const event = created(piece.repeat(times));
        const commit = decodeCommit(encodeCommit(head, [{ id: 'r', from: 1, events: [encodeEvent(event)] }]));
        expect(commit).toEqual({
          ...head,
          runs: [{ id: 'r', from: 1, events: [{ ...event, yaml: event.yaml.toWellFormed() }] }],
        });
      }),
      { numRuns: 30 },
    );
  });

  it('a long text is deflated', () => {
    const yaml = 'a stage like any other\n'.repeat(10_000);
    expect(encodeEvent(created(yaml)).length).toBeLessThan(yaml.length / 20);
  });

  it('of a newer format, or of none, are refused', () => {
    expect(() => decodeCommit(encodeCommit({ ...head, minReader: COMMIT_FORMAT + 1 }, []))).toThrow(UnreadableCommit);
    expect(() => decodeCommit(Buffer.from('{'))).toThrow(UnreadableCommit);
    expect(() => decodeCommit(Buffer.from('{}'))).toThrow(UnreadableCommit);
  });
});

describe('a commit that is damaged', () => {
  it.each([
    { ...head, epoch: 0 },
    { ...head, epoch: 1.5 },
  ])('is refused where its epoch is $epoch', (damaged) => {
    expect(() => decodeCommit(encodeCommit(damaged, []))).toThrow('commit 12 of partition 3 is damaged');
  });

  it('is refused where the version of its first event is none', () => {
    expect(() => decodeCommit(encodeCommit(head, [{ id: 'r', from: -1, events: [] }]))).toThrow(UnreadableCommit);
  });
});

describe('joining decisions (P1)', () => {
  const queued: RunEvent = { type: 'stages_queued', at: NOW, stages: ['a'] };
  const run = (): ReturnType<ReturnType<typeof createdOf>['restored']> => createdOf(text([stage('a')])).restored([]);

  it('decisions about one run lie together, in order', () => {
    const builder = new CommitBuilder();
    const one = run();
    builder.add(one, 2, [queued]);
    builder.add(run(), 2, [queued]);
    builder.add(one, 3, [queued, queued]);
    const draft = builder.take();
    expect([...(draft?.runs.values() ?? [])].map(({ from, to, events }) => [from, to, events.length])).toEqual([
      [2, 4, 3],
      [2, 2, 1],
    ]);
    expect(builder.take()).toBeUndefined();
  });

  it('stops at 256 runs; a run that is among them can still join', () => {
    const builder = new CommitBuilder();
    const runs = Array.from({ length: COMMIT_RUNS_MAX + 1 }, run);
    for (const one of runs) builder.add(one, 2, [queued]);
    expect(builder.waiting).toBe(2);
    expect(builder.take()?.runs.size).toBe(COMMIT_RUNS_MAX);
    expect(builder.take()?.runs.size).toBe(1);
  });

  it('stops at 512 KiB, but for what is small and follows; a larger decision has a commit of its own', () => {
    const builder = new CommitBuilder();
    const large = (bytes: number): RunEvent => ({ type: 'run_quarantined', at: NOW, cause: 'x'.repeat(bytes) });
    builder.add(run(), 2, [large(COMMIT_BYTES_MAX)]);
    builder.add(run(), 2, [queued]);
    expect(builder.waiting).toBe(1);
    builder.add(run(), 2, [large(5 * 1024)]);
    builder.add(run(), 2, [large(DECISION_BYTES_MAX - 100)]);
    expect(builder.waiting).toBe(3);
    while (builder.waiting > 0) expect(builder.take()?.bytes).toBeLessThanOrEqual(DECISION_BYTES_MAX);
  });
});

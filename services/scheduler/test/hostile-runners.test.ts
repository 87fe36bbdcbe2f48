/** What a runner says is a stranger's word: it is taken for what it can be, and for its own stages alone. */
import type { ResultRequest } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

/** What is journaled of it. */
function resultOf(more: object): Record<string, unknown> {
  const world = new Harness();
  world.session('r1-s', { credits: 1 });
  world.create(text([stage('a')]));
  world.settle();
  const { runId, attempt, session, credit } = world.job(0);
  const request = { runId, stage: 'a', attempt, session, credit, status: 'failed', logBytes: 1, ...more };
  world.partition.result(request as ResultRequest, 'r1', () => {});
  world.settle();
  const events = world.appended.flatMap(({ commit }) => commit.runs.flatMap((run) => run.events));
  return { ...events.find(({ type }) => type === 'stage_completed') };
}

describe('a result', () => {
  it.each(['a word of its own', '__proto__', 'constructor', 7, null])(
    'gives no reason that there is not, which would be a label of figures: %j',
    (reason) => {
      expect(resultOf({ reason })).toMatchObject({ status: 'FAILED' });
      expect(resultOf({ reason })['reason']).not.toBe(reason);
    },
  );

  it('gives the reason that it has', () => {
    expect(resultOf({ reason: 'oom', exitCode: 137 })).toMatchObject({
      status: 'FAILED',
      reason: 'oom',
      exitCode: 137,
    });
  });

  it('is a failure where it is no success, with outputs that are texts, and whole numbers', () => {
    const outputs = { text: 'x', number: 7, nested: { a: 1 }, none: null };
    expect(resultOf({ status: 'whatever', exitCode: 'x', logBytes: -1 })).toMatchObject({
      status: 'FAILED',
      logBytes: 0,
    });
    const told = resultOf({ status: 'success', outputs, exitCode: {}, logBytes: Number.NaN });
    expect(told).toMatchObject({ status: 'SUCCESS', outputs: { text: 'x' }, logBytes: 0 });
    expect(told['exitCode']).toBeUndefined();
    for (const nothing of ['text', 7, null, []])
      expect(resultOf({ status: 'success', outputs: nothing })).toMatchObject({ status: 'SUCCESS' });
  });
});

describe('what a result has kept', () => {
  const hash = 'a'.repeat(64);
  const counts = { files: 1, bytes: 1, total: 1, failed: 0, skipped: 0, durationMs: 1 };
  const keptWith = (manifest: unknown): Record<string, unknown> => ({
    status: 'success',
    artifacts: { ...counts, manifest },
    report: { ...counts, manifest },
    caches: [{ key: 'k', sha256: manifest, bytes: 1 }],
  });

  it('is taken by its hashes', () => {
    expect(resultOf(keptWith(hash))).toMatchObject({
      artifacts: { manifest: hash },
      report: { manifest: hash },
      caches: [{ key: 'k', sha256: hash, bytes: 1 }],
    });
  });

  it.each([[[hash]], [[[hash]]], ['x'], [7], [null]])('is left out where %j is none: no store would take it', (no) => {
    const { artifacts, report, caches } = resultOf(keptWith(no));
    expect([artifacts, report, caches]).toEqual([undefined, undefined, undefined]);
  });
});

describe("a lease that lists another runner's attempt", () => {
  it('neither holds up its loss nor counts as having it', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(text([stage('a')]));
    world.settle();
    const { session, credit } = world.job(0);
    const attempts = [world.job(0)];
    world.session('r2-s', { attempts });
    world.dispatch.sessionGone('r1-s');
    expect(world.dispatch.holds({ runner: 'r1', session, credit })).toBe(false);
    world.session('r1-later', { attempts });
    expect(world.dispatch.holds({ runner: 'r1', session, credit })).toBe(true);
  });
});

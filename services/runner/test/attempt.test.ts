/** One attempt, with its executor and its log in the hands of the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineTime } from '@penstock/async';
import type { Job, ResultRequest } from '@penstock/bus';
import { Workspaces, type Executor, type StageExit } from '@penstock/executor';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempt } from '../src/attempt/attempt.ts';
import type { OutgoingLog } from '../src/report/chunk-store.ts';
import type { Sources } from '../src/workspace/preparation.ts';

const job: Job = {
  runId: 'run-1',
  stage: 'build',
  attempt: 1,
  session: 's',
  credit: 1,
  partition: 0,
  epoch: 1,
  key: 'tenant',
  pipelineName: 'p',
  origin: { kind: 'api' },
  workspace: 'shared',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  outputs: [],
  timeoutMs: 60_000,
  logBytesMax: 1_000,
  repeated: false,
};

let folder: string;
let exit: PromiseWithResolvers<StageExit>;
let stored: PromiseWithResolvers<void>;
let started: PromiseWithResolvers<void>;
let kept: ResultRequest[];
let isActive: boolean;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-attempt-'));
  exit = Promise.withResolvers();
  stored = Promise.withResolvers();
  started = Promise.withResolvers();
  kept = [];
  isActive = true;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function attempt(of: Job = job, more: Partial<Executor> = {}): Attempt {
  const executor: Executor = {
    kind: 'process',
    start: () => {
      started.resolve();
      return { ended: exit.promise, startedAtMs: 0, stop: () => {} };
    },
    prewarm: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ...more,
  };
  const outgoingLog = { append: () => {}, stored: () => stored.promise, drop: () => {} };
  const sources = { checkouts: { filling: () => undefined }, inherited: { filling: () => undefined } };
  return new Attempt(of, {
    time: machineTime,
    executor,
    place: undefined,
    workspaces: new Workspaces(join(folder, 'work')),
    sources: sources as unknown as Sources,
    outgoingLog: outgoingLog as unknown as OutgoingLog,
    caches: { restore: async () => [], save: async () => [] },
    artifacts: { keep: async () => undefined },
    reports: { keep: async () => undefined },
    log: silentLogger(),
    keep: (result) => kept.push(result),
    isSessionActive: () => Promise.resolve(isActive),
    slips: {
      present: () => Promise.reject(new Error('the stage names no secrets')),
      renewLease: () => Promise.resolve(),
      open: () => Promise.reject(new Error('nothing is sealed')),
    },
  });
}

describe('an attempt (P16)', () => {
  it('has its result as soon as its processes are gone, and gives it away when the broker has its log', async () => {
    const one = attempt();
    let given: ResultRequest | null | undefined;
    void one.result.then((result) => (given = result));
    await started.promise;
    exit.resolve({ kind: 'exit', code: 0 });
    await expect.poll(() => kept).toMatchObject([{ runId: 'run-1', status: 'success' }]);
    // Its folders are cleared meanwhile; what it waits for is the log alone.
    await expect.poll(() => new Workspaces(join(folder, 'work')).list()).toBeDefined();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(given).toBeUndefined();
    stored.resolve();
    expect(await one.result).toEqual(kept[0]);
  });

  it('that its helper has reported as ended has a result though its session is over by then', async () => {
    const one = attempt();
    await started.promise;
    one.abandon();
    isActive = false;
    stored.resolve();
    exit.resolve({ kind: 'exit', code: 3 });
    expect(await one.result).toMatchObject({ status: 'failed', exitCode: 3 });
    expect(kept).toHaveLength(1);
  });

  it('that would have artifacts where its files stay inside is not started: it fails for them', async () => {
    const start = vi.fn<Executor['start']>();
    const one = attempt(
      { ...job, artifacts: { paths: ['dist/**'], when: 'success', required: false } },
      { filesStayInside: true, start },
    );
    stored.resolve();
    expect(await one.result).toMatchObject({ status: 'failed', reason: 'artifacts' });
    expect(start).not.toHaveBeenCalled();
  });

  it('that was killed with its session has none', async () => {
    const one = attempt();
    await started.promise;
    one.abandon();
    isActive = false;
    exit.resolve({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
    expect(await one.result).toBeNull();
    expect(kept).toEqual([]);
  });
});

/** Guards that a stage has in its hands, where its image is theirs too: nothing that they say costs their runner more than their stage. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootClockMs, type OutputSink, type StageProcess } from '@penstock/executor';
import { RecordingSink } from '@penstock/executor/testing';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { openCluster } from '../src/cluster/cluster.ts';
import { KubernetesExecutor } from '../src/executor.ts';
import { FakeApi } from './fake/fake-api.ts';
import type { FakeGuard } from './fake/fake-guard.ts';
import { stageOf } from './lab/lab.ts';

const WAIT = { timeout: 20_000 };
const NONSENSE = { kind: 'lost', cause: expect.stringContaining('makes no sense') as string };

let api: FakeApi;
let executor: KubernetesExecutor;
let warnings: string[];

beforeEach(async () => {
  api = await FakeApi.start();
  warnings = [];
  executor = new KubernetesExecutor({
    cluster: openCluster({ namespace: 'stages', kubeconfig: api.kubeconfig('runner') }),
    runnerId: 'runner',
    fence: () => bootClockMs() + 60_000,
    fenceMs: 500,
    leaseMs: 60_500,
    sessionOver: new Promise(() => {}),
    image: 'image',
    setupMs: 60_000,
    hasNetworkPolicies: false,
    warn: (_error, message) => warnings.push(message),
  });
});
afterEach(async () => {
  await executor.close();
  await api.close();
});

async function start(
  sink: OutputSink = new RecordingSink(),
  spec = stageOf('true'),
): Promise<{ stage: StageProcess; guard: FakeGuard; uid: string }> {
  const stage = executor.start(spec, sink);
  await vi.waitFor(() => expect(api.pods).toHaveLength(1), WAIT);
  const [pod = ''] = api.pods;
  const guard = api.guardOf(pod);
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  return { stage, guard, uid: guard.uid };
}

it('one that greets again and again is not told again and again what its stage is', async () => {
  const { stage, guard, uid } = await start();
  guard.forge(2, `hello ${uid} waiting\n`.repeat(100));
  expect(await stage.ended).toEqual(NONSENSE);
  expect(guard.starts).toBe(1);
});

it('one that sends more than may wait, while its output is not taken, is not held in memory', async () => {
  const taken = Promise.withResolvers<void>();
  const { stage, guard } = await start({ write: (stream) => (stream === 'stdout' ? taken.promise : undefined) });
  const block = 64 * 1024;
  for (let at = 0; at < 400; at += 1)
    guard.forge(1, Buffer.concat([Buffer.from(`blocks out ${at} 1\n${block} out.${at}\ndata\n`), Buffer.alloc(block)]));
  await vi.waitFor(() => expect(api.deleted).toHaveLength(1), WAIT);
  taken.resolve();
  expect(await stage.ended).toEqual(NONSENSE);
});

it('one that asks more than it can be answered loses its line, and not its stage', async () => {
  const { stage, guard } = await start();
  guard.forge(2, 'ask 1\n'.repeat(10_000));
  await vi.waitFor(() => expect(guard.lines).toBe(2), WAIT);
  guard.end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
});

it('the files of a stage that the runner’s full disk does not take are asked for again, and nothing behind them counts', async () => {
  const spec = stageOf('true', {
    env: { SERVICE_OUTPUT: '/dev/full' },
    folders: ['/dev'],
    contents: [],
    graceMs: 100,
  });
  const { stage, guard } = await start(new RecordingSink(), spec);
  guard.end(0, 'a=1\n');
  await vi.waitFor(() => expect(guard.lines).toBe(3), WAIT);
  expect(warnings[0]).toContain('it is tried again');
  stage.stop('cancelled');
  expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
});

it('values to be masked are seen by whoever takes the output before others replace them, also where the line broke in between', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-masks-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'mask');
  const seen = new Set<string>();
  const sink: OutputSink = { write: () => void (existsSync(path) && seen.add(readFileSync(path, 'utf8'))) };
  const { stage, guard } = await start(sink, stageOf('true', { env: { SERVICE_MASK: path }, folders: [folder] }));
  guard.forge(1, 'masks 6\nfirst\n');
  await vi.waitFor(() => expect(existsSync(path) && readFileSync(path, 'utf8')).toBe('first\n'), WAIT);
  guard.hangUp();
  await vi.waitFor(() => expect(guard.lines).toBe(2), WAIT);
  guard.forge(1, 'masks 6\nother\nblocks out 0 1\n6 out.0\ndata\nfirst\n');
  guard.end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect([...seen]).toEqual(['first\n', 'other\n']);
});

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineTime } from '@penstock/async';
import type { Bus, OpenReply, OpenRequest } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FoldersOnDisk } from '../src/workspace/folders-on-disk.ts';
import { RunFolders } from '../src/workspace/run-folders.ts';

const MINUTE_MS = 60_000;

let root: string;
let open: Set<string>;
let requests: OpenRequest[];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  root = mkdtempSync(join(tmpdir(), 'penstock-folders-'));
  open = new Set();
  requests = [];
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(root, { recursive: true, force: true });
});

/** The folders of a runner whose owners know the runs of `open` as open. */
function folders(isBusy: (runId: string) => boolean = () => false): RunFolders {
  const requestRetrying = (_subject: string, request: OpenRequest): Promise<OpenReply> => {
    requests.push(request);
    return Promise.resolve({ ok: true, epoch: 1, open: request.runIds.filter((runId) => open.has(runId)) });
  };
  const bus = { requestRetrying } as unknown as Bus;
  return new RunFolders({ bus, log: silentLogger(), time: machineTime, disk: new FoldersOnDisk(root), isBusy });
}

async function runFresh(all: RunFolders, runId: string): Promise<void> {
  const workspaces = all.of(0);
  const key = 'tenant';
  const used = await workspaces.prepare({ runId, attempt: '1', key, fresh: true, declaresOutputs: false });
  await workspaces.finish(used);
  all.used(runId, 0, false);
}

function left(): string[] {
  return existsSync(join(root, '0')) ? readdirSync(join(root, '0')).filter((name) => name.startsWith('run-')) : [];
}

describe('the folders of runs that nobody releases (P19)', () => {
  it('go once they have not been used for a while, all of those that are not open', async () => {
    const all = folders();
    for (let number = 0; number < 2_500; number += 1) await runFresh(all, `run-${number}`);
    open.add('run-7');
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    await vi.waitFor(() => expect(left()).toEqual(['run-7']), { timeout: 20_000 });
    expect(Math.max(...requests.map(({ runIds }) => runIds.length))).toBeLessThanOrEqual(1_000);
    all.close();
  });

  it('go although more than a thousand older ones stay open', async () => {
    for (let number = 0; number < 1_200; number += 1) {
      open.add(`run-open-${number}`);
      mkdirSync(join(root, '0', `run-open-${number}`, 'shared'), { recursive: true });
    }
    const all = folders();
    await runFresh(all, 'run-last');
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    await vi.waitFor(() => expect(left()).not.toContain('run-last'), { timeout: 20_000 });
    expect(left()).toHaveLength(1_200);
    all.close();
  });
});

describe('the folder of a run whose stage is running (P19)', () => {
  it('stays though its release comes, and goes when the sweep asks about it afterwards', async () => {
    const busy = new Set(['run-1']);
    const all = folders((runId) => busy.has(runId));
    for (const runId of ['run-1', 'run-2']) await runFresh(all, runId);
    all.release(['run-1', 'run-2']);
    await vi.waitFor(() => expect(left()).toEqual(['run-1']), { timeout: 20_000 });
    busy.clear();
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    await vi.waitFor(() => expect(left()).toEqual([]), { timeout: 20_000 });
    all.close();
  });
});

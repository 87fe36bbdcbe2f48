import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { machineTime } from '@penstock/async';
import { connectBus, type Bus, type ResultRequest } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { canMount, SmallDisk, startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Outbox } from '../src/report/outbox.ts';
import { ResultFile } from '../src/report/result-file.ts';
import { startRunner } from '../src/start.ts';
import type { Runner } from '../src/runner-options.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

const MIB = 1024 ** 2;
const silentBus = { request: () => new Promise(() => {}) } as unknown as Bus;

function result(credit: number): ResultRequest {
  const ref = { runId: 'r', stage: 'build', attempt: 1, session: 's', credit };
  return { ...ref, status: 'success', outputs: { v: 'x'.repeat(60_000) }, logBytes: 0 };
}

describe.runIf(canMount("the runner's full disk"))('a full disk (only where a file system can be mounted)', () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = new SmallDisk(40 * MIB);
  });
  afterEach(() => disk.remove());

  describe('and results (P16)', () => {
    const open = (): Outbox =>
      new Outbox({
        bus: silentBus,
        time: machineTime,
        log: silentLogger(),
        runner: 'r1',
        file: new ResultFile(join(disk.folder, 'results')),
      });

    it('takes the results of all attempts that room was reserved for, and the next start finds them', () => {
      const outbox = open();
      expect([result(1), result(2)].map((each) => outbox.reserve(each))).toEqual([true, true]);
      disk.fill();
      for (const request of [result(1), result(2)]) outbox.keep({ partition: 0, request });
      outbox.close();
      const next = open();
      expect(next.pending.map(({ request }) => request)).toEqual([result(1), result(2)]);
      next.close();
    });

    it('has no room for another attempt', () => {
      const outbox = open();
      disk.fill();
      expect(outbox.reserve(result(1))).toBe(false);
      disk.empty();
      expect(outbox.reserve(result(1))).toBe(true);
      outbox.close();
    });

    it('leaves no half line where a write was short', () => {
      const file = new ResultFile(join(disk.folder, 'results'));
      file.append('first\n');
      disk.fill(4_096);
      expect(() => file.append(`${'x'.repeat(64 * 1024)}\n`)).toThrow('ENOSPC');
      file.append('second\n');
      file.close();
      expect(new ResultFile(join(disk.folder, 'results')).lines()).toEqual(['first', 'second']);
    });
  });

  describe('of a runner', () => {
    let broker: TestBroker;
    let bus: Bus;
    let scheduler: FakeScheduler;
    let runner: Runner | undefined;
    beforeAll(async () => {
      broker = await startTestBroker();
    });
    afterAll(() => broker.stop());
    beforeEach(async () => {
      scheduler = await FakeScheduler.start(broker.url);
      bus = await connectBus({ servers: broker.url, name: 'runner' });
    });
    afterEach(async () => {
      await runner?.close();
      runner = undefined;
      await bus.close();
      await scheduler.close();
    });

    async function start(log = silentLogger()): Promise<Runner> {
      const dataDir = disk.folder;
      return startRunner({ bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs: 60_000, log });
    }

    it('costs the stage that filled it, with its exit code; no stage is taken until there is room again', async () => {
      runner = await start();
      const { job } = await scheduler.grant({ script: 'echo begun; cat /dev/zero >"$PENSTOCK_WORKSPACE/big"; exit 7' });
      const ended = await scheduler.results.next();
      expect(ended).toMatchObject({ runId: job.runId, status: 'failed', reason: 'exit' });
      expect(ended.offer).toBeUndefined();
      expect(await scheduler.logOf(job.runId)).toContain('No space left on device');
      expect(scheduler.offers.waiting).toBe(0);
      rmSync(join(disk.folder, 'work', '0', job.runId, 'shared', 'big'));
      const { reply } = await scheduler.grant({ script: 'true' });
      expect(reply.answer).toBe('accepted');
      expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
    });

    it('that fills up while an offer is open refuses the grant, at no cost to its stage', async () => {
      runner = await start();
      const offered = await scheduler.offers.next();
      disk.fill();
      const { reply } = await scheduler.grant({}, offered);
      expect(reply.answer).toBe('refused');
      disk.empty();
      expect((await scheduler.grant()).reply.answer).toBe('accepted');
      await scheduler.results.next();
    });

    it('that can make few more files takes no stage until it can', async () => {
      const filesMax = (count: number): unknown =>
        execFileSync('mount', ['-o', `remount,nr_inodes=${count}`, disk.folder], { stdio: 'ignore' });
      runner = await start();
      const offered = await scheduler.offers.next();
      filesMax(900);
      expect((await scheduler.grant({}, offered)).reply.answer).toBe('refused');
      filesMax(10_000);
      expect((await scheduler.grant()).reply.answer).toBe('accepted');
      await scheduler.results.next();
    });

    it('lets a stage go on whose log cannot be spooled while the broker is away', async () => {
      const { promise: tried, resolve } = Promise.withResolvers<void>();
      const log = Object.assign(silentLogger(), {
        warn: (...args: unknown[]) => void (String(args[1]).includes('log could not be put') && resolve()),
      });
      runner = await start(log);
      const script = 'echo up; until [ -e go ]; do sleep 0.05; done; seq 1 2000000; echo done';
      const { job } = await scheduler.grant({ script, logBytesMax: 64 * MIB });
      while (!(await scheduler.logOf(job.runId)).includes('up')) continue;
      broker.pause();
      const shared = join(disk.folder, 'work', '0', job.runId, 'shared');
      disk.fill();
      // A name takes no block.
      writeFileSync(join(shared, 'go'), '');
      // The log is longer than pipes, the writer and the chunk that waits can hold: the stage waits for the broker.
      await tried;
      broker.resume();
      const ended = await scheduler.results.next();
      expect(ended).toMatchObject({ runId: job.runId, status: 'success' });
      const text = await scheduler.logOf(job.runId);
      expect(Buffer.byteLength(text)).toBe(ended.logBytes);
      expect(text.endsWith('2000000\ndone\n')).toBe(true);
    });

    it('leaves neither guard nor lease behind where a session cannot start', async () => {
      const before = guards();
      disk.fill();
      await expect(start()).rejects.toThrow('ENOSPC');
      expect(guards()).toEqual(before);
      expect(await scheduler.leasesNow()).toEqual([]);
    });
  });
});

/** Guard processes of this process. */
function guards(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[1] === String(process.pid);
      return isOurs && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('guard.bash');
    } catch {
      return false;
    }
  });
}

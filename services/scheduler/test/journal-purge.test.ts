/** The journal is purged by time and by level, whether or not there is anything to commit (P8). */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, ensureStreams, subjects, type CreateReply, type CreateRequest } from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { startScheduler } from '@penstock/scheduler';
import { JournalPurge } from '@penstock/scheduler/testing';
import { openSqliteStore, runCollections, RunsRepository } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker } from '@penstock/testkit';
import { describe, expect, it, onTestFinished } from 'vitest';

const HOUR_MS = 3_600_000;

/** Ticks once a second, with a store and a journal that take what they are told. */
class Purged {
  now = 0;
  checkpoint: number | undefined;
  readonly load = { journalUsed: 0 };
  readonly to: number[] = [];
  readonly purge = new JournalPurge({
    partition: 0,
    journal: {
      purgeTo: async (sequence) => {
        this.to.push(sequence);
        return { purged: 1 };
      },
    },
    ledger: {
      checkpoint: async (partition) =>
        this.checkpoint === undefined
          ? null
          : { partition, incarnation: 1, sequence: this.checkpoint, commit: this.checkpoint },
    },
    load: this.load,
    log: { warn: () => {} },
    bootNow: () => this.now,
  });

  reach(sequence: number): void {
    this.checkpoint = sequence;
    this.purge.reached(sequence);
  }

  async later(milliseconds: number): Promise<void> {
    this.now += milliseconds;
    this.purge.tick();
    await this.purge.done();
  }
}

describe('purging a partition in which nothing happens (P8)', () => {
  it('P8: takes by its tick what is older than two hours, once', async () => {
    const purged = new Purged();
    purged.reach(7);
    await purged.later(2 * HOUR_MS - 1);
    expect(purged.to).toEqual([]);
    await purged.later(60_000);
    await purged.later(60_000);
    expect(purged.to).toEqual([7]);
  });

  it('P8: takes what came shortly before a pause when that is two hours old, whatever has come since', async () => {
    const purged = new Purged();
    purged.reach(7);
    await purged.later(4_000);
    purged.reach(8);
    await purged.later(HOUR_MS);
    purged.reach(9);
    await purged.later(HOUR_MS + 60_000);
    expect(purged.to).toEqual([8]);
  });

  it('P8: takes all that is projected within seconds once the journal is half full', async () => {
    const purged = new Purged();
    purged.reach(7);
    purged.load.journalUsed = 0.8;
    await purged.later(5_000);
    expect(purged.to).toEqual([7]);
  });

  it('P8: keeps what a checkpoint stands for that the store does not have', async () => {
    const purged = new Purged();
    purged.reach(7);
    purged.checkpoint = 6;
    purged.load.journalUsed = 0.9;
    await purged.later(5_000);
    expect(purged.to).toEqual([]);
  });

  it('P8: takes of a busy partition what was projected two hours ago', async () => {
    const purged = new Purged();
    for (let sequence = 1; sequence <= 300; sequence++) {
      purged.reach(sequence);
      await purged.later(60_000);
    }
    expect(purged.to.at(-1)).toBeGreaterThanOrEqual(178);
    expect(purged.to.at(-1)).toBeLessThanOrEqual(180);
  });
});

/** Nothing is purged until it is let go: how fast a machine fills a journal says nothing then. */
class HeldLedger extends RunsRepository {
  isHeld = true;

  override async checkpoint(partition: number): ReturnType<RunsRepository['checkpoint']> {
    return this.isHeld ? null : await super.checkpoint(partition);
  }
}

it('P8: a journal that is nearly full refuses new runs, and takes them again by itself with nothing to commit', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-journal-'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  onTestFinished(async () => {
    await store.close();
    await bus.close();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 8 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
  const ledger = new HeldLedger(store);
  const scheduler = await startScheduler({ bus, ledger, partitions: 1, log: silentLogger() });
  onTestFinished(() => scheduler.close());
  await scheduler.settled();
  const create = (): Promise<CreateReply> => {
    const filler = randomBytes(225 * 1024).toString('base64');
    const yaml = `pipeline:\n  name: p\nstages:\n  a:\n    run: 'true'\n    runs_on: nobody\n# ${filler}\n`;
    const runId = newRunId({ now: Date.now(), key: 'ada', random: randomBytes(10) });
    const request: CreateRequest = { runId, tenant: 'ada', key: 'ada', yaml, origin: { kind: 'api' } };
    return bus.request(subjects.owner(0, 'create'), request, { timeoutMs: 5_000 });
  };
  const full = { ok: false, code: 'UNAVAILABLE', message: 'the journal is nearly full' };
  // Each takes 4 % of it, and once a second it is looked at how full it is.
  await expect.poll(create, { timeout: 30_000, interval: 250 }).toMatchObject(full);
  ledger.isHeld = false;
  await expect.poll(create, { timeout: 30_000, interval: 250 }).toMatchObject({ ok: true });
}, 60_000);

/** A scheduler over a real broker, whose membership ends at the worst of times. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  acquireLease,
  bucketAgeMs,
  buckets,
  connectBus,
  deleteBuckets,
  ensureStreams,
  openLog,
  subjects,
  type Bus,
  type PullReply,
  type PullRequest,
  type RunnerLease,
} from '@penstock/bus';
import { startScheduler } from '@penstock/scheduler';
import { COMMIT_FORMAT, decodeCommit, encodeCommit, ownerOf } from '@penstock/scheduler/testing';
import { openSqliteStore, runCollections, RunsRepository, type Checkpoint, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const STREAMS = { partitions: 2, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 };

let broker: TestBroker;
let bus: Bus;
let store: DocumentStore;
let folder: string;

beforeAll(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'test' });
  folder = mkdtempSync(join(tmpdir(), 'penstock-scheduler-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
});
afterAll(async () => {
  await store.close();
  await bus.close();
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Fails to read one partition's documents, or holds up reading its checkpoint, for as long as it is told to. */
class TroubledLedger extends RunsRepository {
  readonly #partition: number;
  fails = true;
  held: Promise<void> | undefined;
  readonly onHeld = Promise.withResolvers<void>();

  constructor(partition: number) {
    super(store);
    this.#partition = partition;
  }

  override async checkpoint(partition: number): Promise<Checkpoint | null> {
    if (partition === this.#partition && this.held !== undefined) {
      this.onHeld.resolve();
      await this.held;
    }
    return await super.checkpoint(partition);
  }

  override openOf(partition: number): ReturnType<RunsRepository['openOf']> {
    if (partition === this.#partition && this.fails) throw new Error('the store is away');
    return super.openOf(partition);
  }
}

async function ownersIn(partition: number): Promise<string[]> {
  const owners: string[] = [];
  for await (const { bytes } of openLog(bus, partition).read(1)) owners.push(decodeCommit(bytes).owner);
  return owners;
}

describe('the end of a membership', () => {
  it('P3: while a partition is handed back: nothing is opened until there is a new member id', async () => {
    await ensureStreams(bus, STREAMS);
    const ledger = new TroubledLedger(1);
    const scheduler = await startScheduler({ bus, ledger, partitions: 2, membershipMs: 1_500, log: silentLogger() });
    await scheduler.settled();
    const first = scheduler.member;
    let other = randomUUID() as string;
    while (ownerOf(1, [first, other]) !== other || ownerOf(0, [first, other]) !== first) other = randomUUID();
    const gate = Promise.withResolvers<void>();
    ledger.held = gate.promise;
    await acquireLease(bus, buckets.members, other, { member: other, startedAt: '' }, { ttlMs: 60_000 });
    await ledger.onHeld.promise;
    // No key, no renewal: the membership is over.
    await deleteBuckets(bus);
    await ensureStreams(bus, STREAMS);
    await expect.poll(() => scheduler.member, { interval: 5, timeout: 10_000 }).toBe('');
    ledger.fails = false;
    gate.resolve();
    await expect.poll(() => scheduler.member, { interval: 5, timeout: 10_000 }).not.toBe('');
    await scheduler.settled();
    await scheduler.close();
    for (const partition of [0, 1])
      expect(new Set([first, scheduler.member, ...(await ownersIn(partition))])).toEqual(
        new Set([first, scheduler.member]),
      );
  }, 30_000);
});

describe('a partition that is handed over (P3)', () => {
  it("P3: is opened by its new owner at the message of its release, without a tick of anybody's clock", async () => {
    await deleteBuckets(bus);
    await ensureStreams(bus, STREAMS);
    // Nobody tries again by itself.
    vi.useFakeTimers({ toFake: ['setInterval'] });
    try {
      const scheduler = (): ReturnType<typeof startScheduler> =>
        startScheduler({
          bus,
          ledger: new RunsRepository(store),
          partitions: 2,
          leasesProvenDead: true,
          log: silentLogger(),
        });
      const first = await scheduler();
      await expect.poll(() => first.owned, { timeout: 10_000, interval: 5 }).toBe(2);
      const others: Awaited<typeof first>[] = [];
      // Which partitions a member should have is a matter of its id: one of them takes one over.
      while (first.owned === 2) {
        others.push(await scheduler());
        const shares = (): number => [first, ...others].reduce((sum, { owned }) => sum + owned, 0);
        const members = [first, ...others].map(({ member }) => member);
        const leaves = [0, 1].filter((partition) => ownerOf(partition, members) !== first.member).length;
        await expect.poll(() => [first.owned, shares()], { timeout: 10_000, interval: 5 }).toEqual([2 - leaves, 2]);
      }
      for (const one of [first, ...others]) await one.close();
    } finally {
      vi.useRealTimers();
    }
  }, 30_000);
});

describe('a bucket that was made anew', () => {
  const MEMBERSHIP_MS = 1_500;

  /** Partition 0 was somebody's, of whom the bucket of now knows nothing. */
  async function ownedBefore(): Promise<void> {
    await ensureStreams(bus, STREAMS);
    const log = openLog(bus, 0);
    const last = await log.last();
    const number = last === null ? 1 : decodeCommit(last.bytes).number + 1;
    const epoch = last === null ? 1 : decodeCommit(last.bytes).epoch + 1;
    const bytes = encodeCommit(
      {
        id: randomUUID(),
        kind: 'opened',
        partition: 0,
        epoch,
        number,
        owner: 'before',
        minReader: COMMIT_FORMAT,
        at: 0,
      },
      [],
    );
    await log.append(bytes, { commitId: randomUUID(), expectedSequence: last?.sequence ?? 0 });
    await deleteBuckets(bus);
    await ensureStreams(bus, STREAMS);
  }

  it('P5: says nothing of an owner before one membership has passed since', async () => {
    await ownedBefore();
    const scheduler = await startScheduler({
      bus,
      ledger: new RunsRepository(store),
      partitions: 2,
      membershipMs: MEMBERSHIP_MS,
      log: silentLogger(),
    });
    await expect.poll(() => scheduler.owned, { timeout: 10_000, interval: 5 }).toBe(2);
    expect(await bucketAgeMs(bus, buckets.members)).toBeGreaterThanOrEqual(MEMBERSHIP_MS);
    await scheduler.close();
  }, 30_000);

  it('P17: where the start proves everybody dead there is nothing to wait for', async () => {
    await ownedBefore();
    const scheduler = await startScheduler({
      bus,
      ledger: new RunsRepository(store),
      partitions: 2,
      membershipMs: 600_000,
      leasesProvenDead: true,
      log: silentLogger(),
    });
    await expect.poll(() => scheduler.owned, { timeout: 10_000, interval: 5 }).toBe(2);
    await scheduler.close();
  }, 30_000);
});

describe('a runner speaks in its own name', () => {
  it("P10: slots that it offers under another's are not taken, a lease under another's is ignored", async () => {
    await ensureStreams(bus, STREAMS);
    const warned: string[] = [];
    const log = {
      ...silentLogger(),
      warn: (_fields: unknown, message: string) => void warned.push(message),
    } as unknown as ReturnType<typeof silentLogger>;
    const scheduler = await startScheduler({ bus, ledger: new RunsRepository(store), partitions: 2, log });
    const offer = (runner: string): PullRequest => ({ session: 's', runner, labels: [], credits: [1], withdraw: [] });
    const subject = subjects.pull(scheduler.member, 'mallory');
    expect(await bus.request<PullRequest, PullReply>(subject, offer('alice'), { timeoutMs: 5_000 })).toEqual({
      ok: false,
      withdrawn: [],
    });
    expect(await bus.request<PullRequest, PullReply>(subject, offer('mallory'), { timeoutMs: 5_000 })).toEqual({
      ok: true,
      withdrawn: [],
    });
    const lease: RunnerLease = { runner: 'alice', session: 's', labels: [], slots: 1, attempts: [] };
    await acquireLease(bus, buckets.runners, 'mallory.s', lease, { ttlMs: 60_000 });
    await expect.poll(() => warned).toContain('a lease names another runner or session than its key; it is ignored');
    await scheduler.close();
  }, 30_000);
});

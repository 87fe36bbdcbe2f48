/**
 * A load on three brokers while the one that leads JOURNAL is killed, and what must be there afterwards: what was acknowledged is
 * there once and in order, and no commit stands on any but the one that its owner took for the last.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { bootMs } from '@penstock/async';
import { oncePlaced, startTestCluster, type TestCluster } from '@penstock/testkit';
import { expect } from 'vitest';
import {
  acquireLease,
  type Bus,
  buckets,
  connectBus,
  createLogWriter,
  encodeChunk,
  ensureStreams,
  type LeaseEvent,
  type LeaseWatch,
  type LogEntry,
  openLog,
  type PartitionLog,
  readChunks,
  subjects,
  watchLeases,
} from '../src/index.ts';
import { streams } from '../src/contract/subjects.ts';
import { type RenewResult } from '../src/jetstream/lease.ts';
import { bucketStream } from '../src/jetstream/streams.ts';

const MIB = 1024 * 1024;
const PARTITIONS = 4;
/** Two owners fight for the last partition; the others have one each. */
const CONTENDED = PARTITIONS - 1;
const RUNS = ['run1', 'run2'];
/** What each writer gets acknowledged after a kill, before the broker comes back. */
const PROGRESS = 10;
export const STREAMS = [streams.journal, streams.logs, bucketStream(buckets.members), bucketStream(buckets.runners)];
const MEMBERSHIP_MS = 6_000;
const RUNNER_LEASE_MS = 15_000;
/** Tries are short, so that the test is: an election takes 4 to 9 s, and a try that it swallows waits for its time-out. */
const TRY_MS = 500;
/** Between batches of chunks: enough to be under way at any moment, and not more than can be read back. */
const BATCH_EVERY_MS = 10;

/** Three brokers with the streams of Penstock, and the connections that a test opens to them. */
export class StreamCluster {
  readonly brokers: TestCluster;
  readonly #buses: Bus[] = [];

  private constructor(brokers: TestCluster) {
    this.brokers = brokers;
  }

  static async start(): Promise<StreamCluster> {
    const cluster = new StreamCluster(await startTestCluster());
    const bus = await cluster.newBus('setup');
    await oncePlaced(() =>
      ensureStreams(bus, { partitions: PARTITIONS, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB }),
    );
    return cluster;
  }

  async newBus(name: string, servers = this.brokers.url): Promise<Bus> {
    const bus = await connectBus({ servers, name });
    this.#buses.push(bus);
    return bus;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#buses.map((bus) => bus.close(0)));
    await this.brokers.stop();
  }
}

/** Counts what is acknowledged, and tells when it has grown. */
class Tally {
  #count = 0;
  #waiting: { readonly at: number; readonly resolve: () => void }[] = [];

  add(): void {
    this.#count += 1;
    for (const { at, resolve } of this.#waiting) if (this.#count >= at) resolve();
    this.#waiting = this.#waiting.filter(({ at }) => at > this.#count);
  }

  growsBy(number: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ at: this.#count + number, resolve }));
  }
}

interface Commit {
  readonly id: string;
  /** The commit that its owner took for the last one. */
  readonly after: string | null;
}

function ownerOf(commitId: string): string {
  return commitId.slice(0, commitId.indexOf('-'));
}

/** Appends one commit after the other; deposed, it goes on from what it is told stands there. */
class Owner {
  readonly partition: number;
  readonly acknowledged: string[] = [];
  readonly tally = new Tally();
  readonly #name: string;
  readonly #log: PartitionLog;

  constructor(name: string, bus: Bus, partition: number) {
    this.partition = partition;
    this.#name = name;
    this.#log = openLog(bus, partition, { attemptTimeoutMs: TRY_MS });
  }

  async run(stop: AbortSignal): Promise<void> {
    let last: Pick<LogEntry, 'sequence' | 'commitId'> | null = await this.#log.last();
    for (let number = 1; !stop.aborted; number += 1) {
      const commit: Commit = { id: `${this.#name}-${number}`, after: last?.commitId ?? null };
      const result = await this.#log.append(Buffer.from(JSON.stringify(commit)), {
        commitId: commit.id,
        expectedSequence: last?.sequence ?? 0,
      });
      if (result.ok) {
        last = { sequence: result.sequence, commitId: commit.id };
        this.acknowledged.push(commit.id);
        this.tally.add();
      } else {
        last = result.last;
      }
    }
  }
}

/** Stores chunks of one run, a few in flight. */
class ChunkSource {
  readonly runId: string;
  readonly acknowledged: number[] = [];
  readonly tally = new Tally();
  readonly #bus: Bus;

  constructor(bus: Bus, runId: string) {
    this.runId = runId;
    this.#bus = bus;
  }

  async run(stop: AbortSignal): Promise<void> {
    const writer = createLogWriter(this.#bus, { attemptTimeoutMs: TRY_MS });
    for (let offset = 0; !stop.aborted;) {
      const offsets = Array.from({ length: 8 }, (_, index) => offset + 2 * index);
      offset += 16;
      await Promise.all(
        offsets.map((each) => this.#store(writer.publish(subjects.log(this.runId, 'r1'), chunkAt(each)), each)),
      );
      await pause(BATCH_EVERY_MS);
    }
    writer.close();
  }

  async #store(stored: Promise<unknown>, offset: number): Promise<void> {
    await stored;
    this.acknowledged.push(offset);
    this.tally.add();
  }
}

function chunkAt(offset: number): Uint8Array {
  return encodeChunk({ stage: 'a', attempt: 1, offset, at: 1, parts: [['stdout', 2]], output: Buffer.from('x\n') });
}

/** Renews a lease as its service does, and takes a new key when it has lost one (P3). */
class Holder {
  readonly answers: RenewResult['kind'][] = [];
  readonly lostKeys: string[] = [];
  /** For how long each of them had stood unrenewed, at most. */
  readonly unrenewedMs: number[] = [];
  key = '';
  readonly #bus: Bus;
  readonly #bucket: string;
  readonly ttlMs: number;

  constructor(bus: Bus, bucket: string, ttlMs: number) {
    this.#bus = bus;
    this.#bucket = bucket;
    this.ttlMs = ttlMs;
  }

  async run(stop: AbortSignal, renewEveryMs: number): Promise<void> {
    const stopped = once(stop, 'abort');
    let lease = await this.#acquire();
    for (let isLast = false; !isLast;) {
      await Promise.race([pause(renewEveryMs), stopped]);
      isLast = stop.aborted;
      const { kind } = await lease.renew();
      this.answers.push(kind);
      if (kind !== 'lost') continue;
      this.lostKeys.push(this.key);
      this.unrenewedMs.push(bootMs() - lease.sentAtMs);
      lease = await this.#acquire();
    }
  }

  async #acquire() {
    for (let tries = 1; ; tries += 1) {
      try {
        this.key = `k${crypto.randomUUID()}`;
        return await acquireLease(this.#bus, this.#bucket, this.key, {}, { ttlMs: this.ttlMs });
      } catch (error) {
        if (tries === 10) throw error;
      }
    }
  }
}

/** What a watcher is told over all fail-overs. */
class Watcher {
  readonly expired: { readonly key: string; readonly revision: number }[] = [];
  readonly watch: LeaseWatch;
  #changed = Promise.withResolvers<void>();

  constructor(bus: Bus, bucket: string) {
    this.watch = watchLeases(bus, bucket, ({ kind, key, revision }: LeaseEvent<unknown>) => {
      if (kind !== 'expired') return;
      this.expired.push({ key, revision });
      this.#changed.resolve();
      this.#changed = Promise.withResolvers<void>();
    });
  }

  async hasSeen(keys: readonly string[]): Promise<void> {
    while (!keys.every((key) => this.expired.some((each) => each.key === key))) await this.#changed.promise;
  }
}

/** Kills the leader of JOURNAL so many times under load, each time once all copies are in step. */
export async function expectNothingLost(cluster: StreamCluster, kills: number): Promise<void> {
  const single = await Promise.all(
    Array.from(
      { length: CONTENDED },
      async (_, partition) => new Owner(`owner${partition}`, await cluster.newBus(`owner-${partition}`), partition),
    ),
  );
  const rivals = await Promise.all(
    ['one', 'other'].map(async (name) => new Owner(name, await cluster.newBus(name), CONTENDED)),
  );
  const owners = [...single, ...rivals];
  const sources = await Promise.all(RUNS.map(async (runId) => new ChunkSource(await cluster.newBus(runId), runId)));
  const member = new Holder(await cluster.newBus('member'), buckets.members, MEMBERSHIP_MS);
  const runner = new Holder(await cluster.newBus('runner'), buckets.runners, RUNNER_LEASE_MS);
  const watching = await cluster.newBus('watcher');
  const members = new Watcher(watching, buckets.members);
  const runners = new Watcher(watching, buckets.runners);
  await Promise.all([members.watch.ready, runners.watch.ready]);

  const stop = new AbortController();
  const load = Promise.all([
    ...owners.map((owner) => owner.run(stop.signal)),
    ...sources.map((source) => source.run(stop.signal)),
    member.run(stop.signal, MEMBERSHIP_MS / 3),
    runner.run(stop.signal, RUNNER_LEASE_MS / 5),
  ]);
  // A failure of the load ends the test at once.
  const during = <T>(step: Promise<T>): Promise<T> => Promise.race([step, load.then(() => step)]);
  for (let kill = 0; kill < kills; kill += 1) {
    for (const stream of STREAMS) await during(cluster.brokers.inStep(stream));
    await during(Promise.all([...single, ...sources].map(({ tally }) => tally.growsBy(PROGRESS))));
    const leader = await during(cluster.brokers.leaderOf(streams.journal));
    await leader.kill();
    await during(Promise.all([...single, ...sources].map(({ tally }) => tally.growsBy(PROGRESS))));
    await leader.restart();
  }
  stop.abort();
  await load;

  // Each holder has renewed just now. A membership may not outlive an election, nor does a runner's lease where one takes longer than that:
  // then holder and watchers agree that it is over, and it is so not before its time.
  for (const { holder, watcher } of [
    { holder: member, watcher: members },
    { holder: runner, watcher: runners },
  ]) {
    await watcher.hasSeen(holder.lostKeys);
    watcher.watch.stop();
    // A watch that began anew says again what has ended, while the marker of it stands.
    expect([...new Set(watcher.expired.map(({ key }) => key))]).toEqual(holder.lostKeys);
    expect(holder.unrenewedMs.filter((ms) => ms < holder.ttlMs)).toEqual([]);
    expect(holder.answers).toContain('accepted');
  }

  const reader = await cluster.newBus('reader');
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const stored = (await Array.fromAsync(openLog(reader, partition).read(1))).map(
      ({ bytes }) => JSON.parse(Buffer.from(bytes).toString()) as Commit,
    );
    const ids = stored.map(({ id }) => id);
    expect(stored.map(({ after }) => after)).toEqual([null, ...ids.slice(0, -1)]);
    for (const { acknowledged } of owners.filter((owner) => owner.partition === partition)) {
      const known = new Set(acknowledged);
      expect(ids.filter((id) => known.has(id))).toEqual(acknowledged);
    }
    // Stored and not known to its owner is only what a rival has built upon before the owner could look (P2: it is deposed).
    const known = new Set(owners.flatMap(({ acknowledged }) => acknowledged));
    const unknown = ids.flatMap((id, index) => (known.has(id) ? [] : [[id, ids[index + 1]] as const]));
    expect(
      partition === CONTENDED
        ? unknown.filter(([id, next]) => next === undefined || ownerOf(id) === ownerOf(next))
        : unknown,
    ).toEqual([]);
  }
  await cluster.brokers.inStep(streams.logs); // a copy that is behind would answer for itself
  for (const { runId, acknowledged } of sources) {
    const offsets = new Set((await Array.fromAsync(readChunks(reader, runId, 1))).map(({ chunk }) => chunk.offset));
    expect(acknowledged.filter((offset) => !offsets.has(offset))).toEqual([]);
  }
}

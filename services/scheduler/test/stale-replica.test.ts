/** A scheduler that reads from a replica which is behind: it knows nothing of leases that live. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  acquireLease,
  buckets,
  connectBus,
  connectionOf,
  ensureStreams,
  openLog,
  subjects,
  type Bus,
  type CreateReply,
  type CreateRequest,
  type Job,
  type JobReply,
  type PullReply,
  type PullRequest,
  type RunnerLease,
  type WatchReply,
  type WatchRequest,
} from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { COMMIT_FORMAT, encodeCommit } from '@penstock/scheduler/testing';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const PARTITIONS = 1;
const LONG = { ttlMs: 60_000 };
const TIMELY = { timeoutMs: 5_000 };

let broker: TestBroker;
let bus: Bus;
let behind: Bus;
let store: DocumentStore;
let folder: string;

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'test' });
  behind = await connectBus({ servers: broker.url, name: 'behind' });
  replicaIsBehind(behind);
  await ensureStreams(bus, { partitions: PARTITIONS, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
  folder = mkdtempSync(join(tmpdir(), 'penstock-scheduler-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
});
afterEach(async () => {
  await store.close();
  await Promise.all([bus.close(), behind.close()]);
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The consumers of this bus see what is stored once they are there, as on a follower that lacks what was stored before. */
function replicaIsBehind(over: Bus): void {
  const connection = connectionOf(over);
  const publish = connection.publish.bind(connection);
  vi.spyOn(connection, 'publish').mockImplementation((subject, payload, options) => {
    if (!subject.startsWith('$JS.API.CONSUMER.CREATE.')) return publish(subject, payload, options);
    const request = JSON.parse(Buffer.from((payload ?? '') as Uint8Array).toString()) as { readonly config: object };
    publish(subject, JSON.stringify({ ...request, config: { ...request.config, deliver_policy: 'new' } }), options);
  });
}

/** The buckets count as old enough to say who is gone. */
function scheduler(over: Bus): Promise<Scheduler> {
  return startScheduler({
    bus: over,
    ledger: new RunsRepository(store),
    partitions: PARTITIONS,
    leasesProvenDead: true,
    log: silentLogger(),
  });
}

describe('a replica that is behind', () => {
  it('P3, P5: gives nobody the partition of a member that it does not know yet', async () => {
    const owner = randomUUID();
    const member = await acquireLease(bus, buckets.members, owner, { member: owner, startedAt: '' }, LONG);
    const opened = { id: randomUUID(), kind: 'opened', partition: 0, epoch: 1, number: 1 } as const;
    await openLog(bus, 0).append(encodeCommit({ ...opened, owner, minReader: COMMIT_FORMAT, at: 0 }, []), {
      commitId: opened.id,
      expectedSequence: 0,
    });
    const other = await scheduler(behind);
    await other.settled();
    expect(other.owned).toBe(0);
    expect(await openLog(bus, 0).last()).toMatchObject({ commitId: opened.id });
    await member.release();
    await expect.poll(() => other.owned, { timeout: 10_000, interval: 5 }).toBe(1);
    await other.close();
  }, 30_000);

  it('P5: loses no attempt of a session that it does not know yet, at the take-over of its run', async () => {
    const first = await scheduler(bus);
    // The end of an earlier test's member may not be seen yet.
    await expect.poll(() => first.owned, { timeout: 10_000, interval: 5 }).toBe(1);
    const lease: RunnerLease = { runner: 'r', session: 's', labels: [], slots: 1, attempts: [] };
    await acquireLease(bus, buckets.runners, 'r.s', lease, LONG);
    const granted = Promise.withResolvers<Job>();
    bus.respond<Job, JobReply>(subjects.job('r'), (job) => {
      granted.resolve(job);
      return {
        runId: job.runId,
        stage: job.stage,
        attempt: job.attempt,
        session: job.session,
        credit: job.credit,
        answer: 'accepted',
      };
    });
    const pull: PullRequest = { session: 's', runner: 'r', labels: [], credits: [1], withdraw: [] };
    await bus.request<PullRequest, PullReply>(subjects.pull(first.member, 'r'), pull, TIMELY);
    const runId = await create();
    await granted.promise;
    await first.close();
    const second = await scheduler(behind);
    await second.settled();
    expect(second.owned).toBe(1);
    // The broker knows by then that it listens.
    await behind.flush();
    // Committed with or behind everything that the take-over has decided.
    await create();
    const asked: WatchRequest = { runId, after: 0 };
    const reply = await bus.request<WatchRequest, WatchReply>(subjects.owner(0, 'watch'), asked, TIMELY);
    if (!reply.ok) throw new Error(reply.code);
    expect(reply.run?.events.map(({ type }) => type)).toEqual(['run_created', 'stages_queued', 'stage_started']);
    await second.close();
  }, 30_000);
});

async function create(): Promise<string> {
  const runId = newRunId({ now: Date.now(), key: 'user', random: randomBytes(16) });
  const yaml = 'pipeline:\n  name: p\nstages:\n  a:\n    run: sleep 60\n';
  const request: CreateRequest = { runId, tenant: 'user', key: 'user', yaml, origin: { kind: 'api' } };
  expect(await bus.request<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, TIMELY)).toMatchObject({
    ok: true,
  });
  return runId;
}

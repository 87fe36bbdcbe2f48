/** An ingest on a real broker and store, with a real scheduler and a runner that succeeds at everything at once. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  acquireLease,
  buckets,
  type Bus,
  connectBus,
  ensureStreams,
  type Job,
  type JobReply,
  type PullRequest,
  type ResultReply,
  type ResultRequest,
  RUNNER_LEASE_MS,
  type RunnerLease,
  subjects,
} from '@penstock/bus';
import { loadTiers } from '@penstock/config';
import type { MirrorCache } from '@penstock/git';
import { openMirrors } from '@penstock/git/mirrors';
import { buildServer } from '@penstock/http';
import { Owners, RunReads } from '@penstock/run-client';
import type { RunView } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import type { FastifyInstance } from 'fastify';
import { ingestCollections, startWebhookIngest } from '../src/index.ts';
import type { WebhookIngest, WebhookIngestOptions } from '../src/start.ts';

const MIB = 1024 * 1024;
const PARTITIONS = 2;
export const JWT_SECRET = 'a-secret-of-more-than-thirty-two-bytes';

export interface World {
  readonly broker: TestBroker;
  readonly bus: Bus;
  readonly store: DocumentStore;
  readonly runs: RunsRepository;
  readonly reads: RunReads;
  readonly mirrors: MirrorCache;
  /** Addresses that were to be cloned. */
  readonly fetches: readonly string[];
  /** Refs that were looked for. */
  readonly looks: readonly string[];
  readonly scheduler: Scheduler;
  /** Jobs that the runner was given. */
  readonly jobs: readonly Job[];
  /** The runner leaves stages running while this is set. */
  held: boolean;
  /** Ends those that were left running. */
  release(): void;
  /** In place of those before it, unless it is to be `beside` them: they share their deliveries. */
  ingest(
    options?: Partial<WebhookIngestOptions> & { readonly beside?: boolean; readonly aMinute?: number },
  ): Promise<RunningIngest>;
  approve(runId: string): Promise<void>;
  /** All runs of the tenant, the newest first. */
  runsOf(tenant?: string): Promise<RunView[]>;
  close(): Promise<void>;
}

export interface RunningIngest {
  readonly app: FastifyInstance;
  readonly ingest: WebhookIngest;
  send(payload: unknown, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>> & { readonly run_id?: string | null };
}

export async function makeWorld(): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-ingest-'));
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'ingest' });
  const schedulerBus = await connectBus({ servers: broker.url, name: 'scheduler' });
  await ensureStreams(bus, { partitions: PARTITIONS, journalBytesMax: 256 * MIB, logsBytesMax: 64 * MIB });
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...runCollections, ...ingestCollections],
    synchronous: 'normal',
  });
  const runs = new RunsRepository(store);
  const scheduler = await startScheduler({
    bus: schedulerBus,
    ledger: runs,
    log: silentLogger(),
    partitions: PARTITIONS,
  });
  await scheduler.settled();
  const jobs: Job[] = [];
  const runner = await startRunner(schedulerBus, scheduler, jobs, () => world.held);
  const owners = new Owners(bus, PARTITIONS);
  const reads = new RunReads(owners, runs);
  const fetches: string[] = [];
  const looks: string[] = [];
  const opened = openMirrors({
    folder: join(folder, 'mirrors'),
    bytesMax: 512 * MIB,
    policy: { mode: 'development', allowedHosts: [] },
    log: silentLogger(),
  });
  const mirrors: MirrorCache = {
    fetch: (request) => (fetches.push(request.url), opened.fetch(request)),
    findRef: (request) => (looks.push(request.ref), opened.findRef(request)),
    close: () => opened.close(),
  };
  const open: (() => Promise<void>)[] = [];
  const world: World = {
    broker,
    bus,
    store,
    runs,
    reads,
    scheduler,
    jobs,
    mirrors,
    fetches,
    looks,
    held: false,
    release: () => runner.release(),
    async ingest({ beside = false, aMinute: webhook = 0, ...options } = {}) {
      if (!beside) for (const end of open.splice(0)) await end();
      const ingest = await startWebhookIngest({
        bus,
        store,
        mirrors,
        log: silentLogger(),
        partitions: PARTITIONS,
        mode: 'development',
        allowedHosts: [],
        jwtSecret: JWT_SECRET,
        baseUrl: () => 'http://ci.example',
        tiers: loadTiers(),
        waitSecs: 20,
        ...options,
      });
      const rateLimits = { read: 0, api: 0, webhook };
      const app = buildServer({ corsOrigins: [], connectionsMax: 100, log: silentLogger(), rateLimits });
      await ingest.addRoutes(app);
      let closed = false;
      const close = async (): Promise<void> => {
        if (closed) return;
        closed = true;
        await app.close();
        await ingest.close();
      };
      open.push(close);
      return {
        app,
        ingest,
        close,
        async send(payload, headers = {}) {
          const response = await app.inject({
            method: 'POST',
            url: '/webhook',
            headers: { 'content-type': 'application/json', ...headers },
            payload: typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
          });
          return { status: response.statusCode, headers: response.headers, body: response.json() };
        },
      };
    },
    async approve(runId) {
      await owners.approve({ runId, tenants: ['service'], by: 'somebody' });
    },
    runsOf: (tenant = 'service') => reads.newest([tenant], { limit: 500 }),
    async close() {
      for (const end of open.splice(0)) await end();
      runner.stop();
      owners.close();
      await scheduler.close();
      await mirrors.close();
      await bus.close(0);
      await schedulerBus.close(0);
      await store.close();
      await broker.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return world;
}

async function startRunner(
  bus: Bus,
  scheduler: Scheduler,
  jobs: Job[],
  held: () => boolean,
): Promise<{ stop(): void; release(): void }> {
  const waiting: (() => void)[] = [];
  const runner = 'noop';
  const session = randomBytes(8).toString('hex');
  const value: RunnerLease = { runner, session, labels: ['takes=untrusted'], slots: 4, attempts: [] };
  const lease = await acquireLease(bus, buckets.runners, `${runner}.${session}`, value, { ttlMs: RUNNER_LEASE_MS });
  const renewal = setInterval(() => void lease.renew(), 3_000);
  let credit = 0;
  const subscription = bus.respond<Job, JobReply>(subjects.job(runner), (job) => {
    jobs.push(job);
    const ref = { runId: job.runId, stage: job.stage, attempt: job.attempt, session, credit: job.credit };
    credit += 1;
    const result: ResultRequest = {
      ...ref,
      status: 'success',
      logBytes: 0,
      offer: { scheduler: scheduler.member, credit },
    };
    const report = (): void =>
      void bus
        .request<ResultRequest, ResultReply>(subjects.result(job.partition, runner), result, { timeoutMs: 10_000 })
        .catch(() => {});
    if (held()) waiting.push(report);
    else setImmediate(report);
    return { ...ref, answer: 'accepted' };
  });
  // Credits end after half a minute: offered anew, as a runner does.
  const offer = (): void => {
    const pull: PullRequest = {
      session,
      runner,
      labels: ['takes=untrusted'],
      credits: Array.from({ length: 4 }, () => (credit += 1)),
      withdraw: [],
    };
    void bus.request(subjects.pull(scheduler.member, runner), pull, { timeoutMs: 5_000 }).catch(() => {});
  };
  offer();
  const offers = setInterval(offer, 10_000);
  return {
    release: () => {
      for (const report of waiting.splice(0)) report();
    },
    stop: () => {
      clearInterval(renewal);
      clearInterval(offers);
      subscription.stop();
    },
  };
}

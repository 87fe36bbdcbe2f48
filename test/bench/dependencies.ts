/** What the benchmarks of whole runs stand on: a real broker and store, a scheduler, and runners that do nothing or everything. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  acquireLease,
  buckets,
  type Bus,
  type CommittedEvents,
  connectBus,
  type CreateReply,
  ensureStreams,
  type Job,
  type JobReply,
  type PullRequest,
  RequestTimeout,
  type ResultReply,
  type ResultRequest,
  RUNNER_LEASE_MS,
  type RunnerLease,
  subjects,
} from '@penstock/bus';
import { keyOf, newRunId, partitionOf, SERVICE_TENANT } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { createLogger } from '@penstock/telemetry';
import type { Meter } from '@penstock/telemetry/metrics';
import type { Tracer } from '@penstock/telemetry/traces';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { temporaryFolder } from '../support/server.ts';

export interface Dependencies {
  readonly broker: TestBroker;
  readonly bus: Bus;
  /** Of who asks for runs: another process's, or another thread's. */
  readonly client: Bus;
  readonly store: DocumentStore;
  readonly runs: RunsRepository;
  readonly scheduler: Scheduler;
  readonly folder: string;
  close(): Promise<void>;
}

export const THREE_STAGES = [
  'pipeline:',
  '  name: bench',
  'stages:',
  '  a:',
  '    run: "true"',
  '  b:',
  '    run: "true"',
  '    after: a',
  '  c:',
  '    run: "true"',
  '    after: b',
].join('\n');

export async function makeDependencies(
  options: { readonly syncAlways?: boolean; readonly meter?: Meter; readonly tracer?: Tracer } = {},
): Promise<Dependencies> {
  const folder = temporaryFolder('penstock-bench-');
  const broker = await startTestBroker(options.syncAlways === true ? { sync: 'always' } : {});
  // As in `serve`.
  const bus = await connectBus({ servers: broker.url, name: 'bench', answersItself: true });
  const client = await connectBus({ servers: broker.url, name: 'bench-client' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 400 * 1024 ** 2, logsBytesMax: 400 * 1024 ** 2 });
  const store = await openSqliteStore({ path: join(folder.path, 'store.sqlite'), collections: runCollections });
  const runs = new RunsRepository(store);
  const log = createLogger({ service: 'bench', level: 'warn' });
  const scheduler = await startScheduler({
    bus,
    ledger: runs,
    log,
    partitions: 1,
    meter: options.meter,
    tracer: options.tracer,
  });
  await scheduler.settled();
  return {
    broker,
    bus,
    client,
    store,
    runs,
    scheduler,
    folder: folder.path,
    close: async () => {
      await scheduler.close();
      await store.close();
      await client.close();
      await bus.close();
      await broker.stop();
      folder.remove();
    },
  };
}

/**
 * A runner that answers every job with success at once: what is left is the engine. Each of the schedulers (by their member
 * ids) has `slots` credits of it at any time.
 */
export async function startNoOpRunner(
  bus: Bus,
  schedulers: readonly string[],
  slots: number,
): Promise<{ stop(): void }> {
  const runner = 'noop';
  const session = randomBytes(8).toString('hex');
  const value: RunnerLease = { runner, session, labels: [], slots: slots * schedulers.length, attempts: [] };
  const lease = await acquireLease(bus, buckets.runners, `${runner}.${session}`, value, { ttlMs: RUNNER_LEASE_MS });
  const renewal = setInterval(() => void lease.renew(), 3_000);
  let lastCredit = 0;
  const offered = new Map<number, string>();
  const issue = (scheduler: string): number => {
    lastCredit += 1;
    offered.set(lastCredit, scheduler);
    return lastCredit;
  };
  const subscription = bus.respond<Job, JobReply>(subjects.job(runner), (job) => {
    const ref = { runId: job.runId, stage: job.stage, attempt: job.attempt, session, credit: job.credit };
    const scheduler = offered.get(job.credit) ?? '';
    offered.delete(job.credit);
    const result: ResultRequest = {
      ...ref,
      status: 'success',
      logBytes: 0,
      offer: { scheduler, credit: issue(scheduler) },
    };
    setImmediate(
      () =>
        // Where the machine is busy its partition may have no owner for a moment.
        void bus.requestRetrying<ResultRequest, ResultReply>(subjects.result(job.partition, runner), result, {
          deadlineMs: 30_000,
          timeoutMs: 10_000,
        }),
    );
    return { ...ref, answer: 'accepted' };
  });
  for (const scheduler of schedulers) {
    const pull: PullRequest = {
      session,
      runner,
      labels: [],
      credits: Array.from({ length: slots }, () => issue(scheduler)),
      withdraw: [],
    };
    await bus.request(subjects.pull(scheduler, runner), pull, { timeoutMs: 5_000 });
  }
  return {
    stop: () => {
      clearInterval(renewal);
      subscription.stop();
    },
  };
}

export interface RunDriver {
  /** Creates a run; resolves at its end with its status. */
  runOne(yaml?: string): Promise<string>;
  /** Creates a run; resolves when it is durable. */
  create(yaml: string): Promise<string>;
}

/** `keys`: over how many pipelines, and so over how many partitions, the runs are spread. */
export function driveRuns(bus: Bus, options: { readonly partitions?: number; readonly keys?: number } = {}): RunDriver {
  const { partitions = 1, keys = 1 } = options;
  const ends = new Map<string, (status: string) => void>();
  bus.subscribe<CommittedEvents>(subjects.events('*'), ({ runId, events }) => {
    const last = events.at(-1);
    if (last?.type === 'run_completed') ends.get(runId)?.(last.status);
  });
  let turn = 0;
  const newRun = (): { readonly runId: string; readonly key: string } => {
    turn += 1;
    const key = keyOf({ tenant: SERVICE_TENANT, pipelineName: keys === 1 ? 'bench' : `bench-${turn % keys}` });
    return { key, runId: newRunId({ now: Date.now(), key, random: randomBytes(8) }) };
  };
  const createAs = async (
    { runId, key }: { readonly runId: string; readonly key: string },
    yaml: string,
  ): Promise<void> => {
    const request = { runId, tenant: SERVICE_TENANT, key, yaml, origin: { kind: 'api' } };
    // As gateways do: an owner that hands its partition over answers nothing more, and creating twice is the same run.
    for (let tries = 1; ; tries += 1) {
      try {
        const reply = await bus.requestRetrying<typeof request, CreateReply>(
          subjects.owner(partitionOf(runId, partitions), 'create'),
          request,
          { deadlineMs: 10_000, timeoutMs: 1_000 },
        );
        if (!reply.ok) throw new Error(reply.message);
        return;
      } catch (error) {
        if (!(error instanceof RequestTimeout) || tries === 10) throw error;
      }
    }
  };
  return {
    async create(yaml) {
      const run = newRun();
      await createAs(run, yaml);
      return run.runId;
    },
    async runOne(yaml = THREE_STAGES) {
      const run = newRun();
      const end = new Promise<string>((resolve) => ends.set(run.runId, resolve));
      await createAs(run, yaml);
      const status = await end;
      ends.delete(run.runId);
      return status;
    },
  };
}

/** Runs `work` over and over, `inFlight` at a time, for so long; how many ended a second. */
export async function ratePerSecond(
  work: () => Promise<unknown>,
  inFlight: number,
  milliseconds: number,
): Promise<number> {
  let done = 0;
  const start = performance.now();
  const end = start + milliseconds;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (performance.now() < end) {
        await work();
        done += 1;
      }
    }),
  );
  return (done * 1000) / (performance.now() - start);
}

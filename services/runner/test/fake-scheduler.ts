/** A scheduler of one's own making: it owns every partition of a real broker and grants what a test tells it to. */
import { randomUUID } from 'node:crypto';
import {
  acquireLease,
  buckets,
  connectBus,
  ensureStreams,
  readChunks,
  subjects,
  watchLeases,
  type AttemptRef,
  type Bus,
  type BusSubscription,
  type Job,
  type JobReply,
  type Lease,
  type LeaseEvent,
  type LeaseWatch,
  type OpenReply,
  type OpenRequest,
  type PullReply,
  type PullRequest,
  type ResultReply,
  type ResultRequest,
  type RunnerLease,
  type StopReply,
  type StopRequest,
} from '@penstock/bus';
import { plainJob } from './plain-job.ts';

export const RUNNER = 'runner-1';

export interface Offered {
  readonly session: string;
  readonly credit: number;
  /** The run that the session serves alone. */
  readonly only?: PullRequest['only'];
  /** It is for what is bound to the runner alone. */
  readonly leaving?: PullRequest['leaving'];
}

/** Values that come one after the other, each to be waited for. */
class Inbox<T> {
  readonly #values: T[] = [];
  #waiting: ((value: T) => void)[] = [];

  put(value: T): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#values.push(value);
    else waiting(value);
  }

  next(): Promise<T> {
    const value = this.#values.shift();
    return value === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(value);
  }

  get waiting(): number {
    return this.#values.length;
  }

  drop(): void {
    this.#values.length = 0;
  }
}

export class FakeScheduler {
  readonly bus: Bus;
  readonly member: string;
  readonly offers = new Inbox<Offered>();
  readonly withdrawn = new Inbox<number>();
  readonly results = new Inbox<ResultRequest>();
  readonly leases = new Inbox<LeaseEvent<RunnerLease>>();
  readonly asked = new Inbox<OpenRequest>();
  /** Credits that are open here. */
  readonly open = new Set<number>();
  /** What `run.<p>.open` answers. */
  openRuns: string[] = [];
  /** Whether a result's offer is taken. */
  takeOffers = true;
  /** Answers to results; null: none at all. */
  answerResult: (request: ResultRequest) => ResultReply | null = () => ({
    ok: true,
    answer: 'committed',
    epoch: 1,
    offerTaken: this.takeOffers,
  });
  #subscriptions: BusSubscription[] = [];
  #watch: LeaseWatch | null = null;
  #lease: Lease | null = null;

  private constructor(bus: Bus, member: string) {
    this.bus = bus;
    this.member = member;
  }

  static async start(url: string, member = 'scheduler-1'): Promise<FakeScheduler> {
    const bus = await connectBus({ servers: url, name: member });
    await ensureStreams(bus, { partitions: 1, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 512 * 1024 ** 2 });
    const scheduler = new FakeScheduler(bus, member);
    await scheduler.#serve();
    return scheduler;
  }

  async #serve(): Promise<void> {
    const { bus } = this;
    this.#subscriptions = [
      bus.respond<PullRequest, PullReply>(
        subjects.pull(this.member, '*'),
        ({ session, credits, withdraw, only, leaving }) => {
          for (const credit of credits) {
            this.open.add(credit);
            this.offers.put({ session, credit, ...(only && { only }), ...(leaving && { leaving }) });
          }
          const withdrawn = withdraw.filter((credit) => this.open.delete(credit));
          for (const credit of withdrawn) this.withdrawn.put(credit);
          return { ok: true, withdrawn };
        },
      ),
      bus.respond<ResultRequest, ResultReply>(subjects.result(0, RUNNER), (request, call) => {
        this.results.put(request);
        const reply = this.answerResult(request);
        if (reply !== null) {
          if (reply.ok && reply.offerTaken && request.offer !== undefined) {
            this.open.add(request.offer.credit);
            this.offers.put({ session: request.session, credit: request.offer.credit });
          }
          return reply;
        }
        call.drop();
        return { ok: true, answer: 'committed', epoch: 1, offerTaken: false };
      }),
      bus.respond<OpenRequest, OpenReply>(subjects.owner(0, 'open'), (request) => {
        this.asked.put(request);
        return { ok: true, epoch: 1, open: request.runIds.filter((runId) => this.openRuns.includes(runId)) };
      }),
    ];
    this.#watch = watchLeases<RunnerLease>(bus, buckets.runners, (event) => this.leases.put(event));
    await this.#watch.ready;
    await bus.flush();
    this.#lease = await acquireLease(
      bus,
      buckets.members,
      this.member,
      { member: this.member, startedAt: '' },
      { ttlMs: 600_000 },
    );
  }

  /** The keys of all leases of runners, as the broker has them now. */
  async leasesNow(): Promise<string[]> {
    const keys: string[] = [];
    const watch = watchLeases<RunnerLease>(
      this.bus,
      buckets.runners,
      ({ kind, key }) => void (kind === 'put' && keys.push(key)),
    );
    await watch.ready;
    watch.stop();
    return keys;
  }

  /** Grants a stage on the next open credit, as a job. */
  async grant(
    more: Partial<Job> & { readonly script?: string } = {},
    offered?: Offered,
  ): Promise<{ readonly job: Job; readonly reply: JobReply }> {
    const job = this.jobFor(offered ?? (await this.offers.next()), more);
    this.open.delete(job.credit);
    return { job, reply: await this.send(job) };
  }

  jobFor(offered: Offered, { script = 'true', ...more }: Partial<Job> & { readonly script?: string } = {}): Job {
    const { session, credit } = offered;
    return {
      ...plainJob,
      runId: `run-${randomUUID()}`,
      session,
      credit,
      commands: [{ script, bindings: {} }],
      logBytesMax: 4 * 1024 ** 2,
      ...more,
    };
  }

  send(job: Job): Promise<JobReply> {
    return this.bus.request<Job, JobReply>(subjects.job(RUNNER), job, { timeoutMs: 2_000 });
  }

  stopAttempt(ref: AttemptRef, reason: 'cancelled' | 'timeout' = 'cancelled'): Promise<StopReply> {
    const { runId, stage, attempt, session, credit } = ref;
    return this.bus.request<StopRequest, StopReply>(
      subjects.stop(RUNNER),
      { runId, stage, attempt, session, credit, reason },
      { timeoutMs: 2_000 },
    );
  }

  release(runIds: readonly string[]): void {
    this.bus.publish(subjects.release(RUNNER), { runIds });
  }

  /** The next lease that satisfies. */
  async leaseWhere(wanted: (event: LeaseEvent<RunnerLease>) => boolean): Promise<LeaseEvent<RunnerLease>> {
    for (;;) {
      const event = await this.leases.next();
      if (wanted(event)) return event;
    }
  }

  /** The log of a run as stored, doubles left out by their offsets. */
  async logOf(runId: string): Promise<string> {
    const output: Buffer[] = [];
    let end = 0;
    for await (const { chunk } of readChunks(this.bus, runId, 1)) {
      const fresh = chunk.output.subarray(Math.max(0, end - chunk.offset));
      if (chunk.offset > end || fresh.length === 0) continue;
      output.push(Buffer.from(fresh));
      end += fresh.length;
    }
    return Buffer.concat(output).toString('utf8');
  }

  /** It is no scheduler any more. */
  async leave(): Promise<void> {
    await this.#lease?.release();
    this.#lease = null;
  }

  async close(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.stop();
    this.#watch?.stop();
    await this.#lease?.release().catch(() => {});
    await this.bus.close();
  }
}

/**
 * A partition with a hand-driven world: the test acknowledges commits, answers jobs, moves the clock. After every step of it
 * the invariants of all of its parts are asserted.
 */
import type { CreateRequest, Job, RunnerLease, StopRequest } from '@penstock/bus';
import type { PipelineDefinition, StageDefinition } from '@penstock/pipeline';
import { newRunId, type RunEvent } from '@penstock/run';
import type { StoredStanding } from '@penstock/store';
import {
  BadPipeline,
  decodeCommit,
  Dispatch,
  LiveRun,
  Partition,
  type AttemptLogRef,
  type Commit,
  type DefinitionSource,
  type JobAnswer,
  type PartitionPorts,
  type PartitionSettings,
  type RestoredPartition,
  type RunMeter,
  type SchedulerLoad,
  type StopAnswer,
} from '@penstock/scheduler/testing';

export const HOUR_MS = 3_600_000;
export const NOW = 1_800_000_000_000;

export function stage(name: string, more: Partial<StageDefinition> = {}): StageDefinition {
  return {
    name,
    after: [],
    runsAfterFailure: false,
    commands: [{ script: 'true', bindings: {} }],
    env: {},
    timeoutMs: 60_000,
    retry: { max: 0, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
    allowFailure: false,
    workspace: 'shared',
    runsOn: [],
    outputs: [],
    ...more,
  };
}

/** A text that `definitions` reads: the definition as JSON. */
export function text(stages: readonly StageDefinition[], more: Partial<PipelineDefinition> = {}): string {
  return JSON.stringify({ name: 'ship', schedule: [], stages, ...more } satisfies PipelineDefinition);
}

/** Runs of one text share what it means, as in a scheduler. */
const read = new Map<string, PipelineDefinition>();

export const definitions: DefinitionSource = {
  find: (yaml, extensions) => {
    if (!yaml.startsWith('{')) throw new BadPipeline('1:1 no pipeline');
    const definition = read.get(yaml) ?? (JSON.parse(yaml) as PipelineDefinition);
    read.set(yaml, definition);
    return { definition, yaml, extensions };
  },
};

export const settings: PartitionSettings = {
  partition: 0,
  member: 'me',
  epoch: 7,
  queueTimeoutMs: 24 * HOUR_MS,
  logBytesMax: 1_000,
  artifactExpireMs: 86_400_000,
  workspaceGraceMs: 15_000,
  liveRunsPerKeyMax: 100,
  approvalMs: 30 * 24 * HOUR_MS,
  heldMax: 3,
};

interface Sent<Message, Answer> {
  readonly runner: string;
  readonly message: Message;
  readonly answer: (answer: Answer) => void;
}

export class Harness {
  /** The wall clock, which a test may set. */
  now = NOW;
  /** The boot clock, which nothing sets. */
  boot = 5_000;
  mayAct = true;
  mayDeclareLoss = true;
  stored: boolean | 'unavailable' = false;
  readonly load: SchedulerLoad;
  readonly dispatch = new Dispatch();
  readonly appended: { readonly commit: Commit; readonly expectedSequence: number; readonly bytes: number }[] = [];
  readonly jobs: Sent<Job, JobAnswer>[] = [];
  readonly stops: Sent<StopRequest, StopAnswer>[] = [];
  readonly shown: string[] = [];
  readonly released: string[] = [];
  /** How many runs each message to a runner released. */
  readonly releases: number[] = [];
  readonly askedStore: string[] = [];
  /** Numbers of pull requests. */
  readonly askedHeads: number[] = [];
  readonly headAnswers: (() => void)[] = [];
  answersHeadsLater = false;
  /** Runs that the store knows, as it is asked for ticks. */
  readonly storedIds = new Set<string>();
  /** What the store says of runs that are to be deleted. */
  readonly standings = new Map<string, StoredStanding | 'unavailable'>();
  readonly forgottenLogs: string[] = [];
  readonly storeAnswers: (() => void)[] = [];
  answersStoreLater = false;
  storedHead: { readonly sequence: number; readonly commit: string } | null | 'unavailable' = null;
  /** What `project` has written, or a test. */
  readonly documents = new Map<string, { readonly events: readonly RunEvent[]; readonly sequence: number }>();
  /** Runs whose documents are being read. */
  readonly reads: { readonly runId: string; answer(): void }[] = [];
  storeIsAway = false;
  /** Runs whose documents the store cannot read. */
  readonly damaged = new Set<string>();
  /** The logs that were closed by a mark; the first mark has the sequence 1. */
  readonly closedLogs: AttemptLogRef[] = [];
  /** False: logs wait to be closed, as while the broker is away. */
  storesMarks = true;
  readonly waitingLogs: { readonly stands: () => boolean; readonly closed: (sequence: number) => void }[] = [];
  readonly partition: Partition;
  /** Whose methods are no steps. */
  readonly bare: Partition;
  #steps = 0;
  #ids = 0;
  #acknowledged = 0;
  #sequence = 100;

  constructor(
    options: Partial<
      Pick<
        RestoredPartition,
        'runs' | 'parked' | 'usages' | 'schedules' | 'deleted' | 'leftOut' | 'neverOwned' | 'idsTo'
      >
    > & {
      readonly liveBytesMax?: number;
      readonly settings?: Partial<PartitionSettings>;
      readonly start?: boolean;
      readonly meter?: Pick<RunMeter, 'committed'>;
    } = {},
  ) {
    this.load = {
      liveRuns: 0,
      liveRunsMax: 1_000,
      liveBytes: 0,
      liveBytesMax: options.liveBytesMax ?? 1024 ** 4,
      journalUsed: 0,
      unprojectedBytes: 0,
    };
    const ports: PartitionPorts = {
      now: () => this.now,
      bootNow: () => this.boot,
      newCommitId: () => `c${++this.#ids}`,
      append: (bytes, { expectedSequence }) =>
        void this.appended.push({ commit: decodeCommit(bytes), expectedSequence, bytes: bytes.byteLength }),
      mayAct: () => this.mayAct,
      mayDeclareLoss: () => this.mayDeclareLoss,
      counted: (parts) => {
        for (const part of parts) options.meter?.committed(part);
      },
      publishEvents: ({ events }) => void this.shown.push(...events.map(({ type }) => type)),
      sendJob: (runner, message, answer) =>
        void this.jobs.push({ runner, message, answer: (given) => this.#step(() => answer(given)) }),
      sendStop: (runner, message, answer) =>
        void this.stops.push({ runner, message, answer: (given) => this.#step(() => answer(given)) }),
      release: (runner, runIds) => {
        this.releases.push(runIds.length);
        this.released.push(...runIds.map((id) => `${runner}/${id}`));
      },
      isStored: (runId, then) => {
        this.askedStore.push(runId);
        const { stored } = this;
        this.storeAnswers.push(() => this.#step(() => then(stored)));
        if (!this.answersStoreLater) this.storeAnswers.pop()?.();
      },
      storedRuns: (runIds, then) => {
        this.askedStore.push(...runIds);
        this.storeAnswers.push(() =>
          this.#step(() =>
            then(this.stored === 'unavailable' ? this.stored : new Set(runIds.filter((id) => this.storedIds.has(id)))),
          ),
        );
        if (!this.answersStoreLater) this.storeAnswers.pop()?.();
      },
      storedStanding: (runId, then) => {
        this.storeAnswers.push(() => this.#step(() => then(this.standings.get(runId) ?? null)));
        if (!this.answersStoreLater) this.storeAnswers.pop()?.();
      },
      forgetLogs: (runs) => this.forgottenLogs.push(...runs.map(({ id }) => id)),
      headInStore: (of, then) => {
        this.askedHeads.push(of.number);
        this.headAnswers.push(() => this.#step(() => then(this.storedHead)));
        if (!this.answersHeadsLater) this.headAnswers.pop()?.();
      },
      closeLog: (log, stands, then) => {
        if (!this.storesMarks) {
          this.waitingLogs.push({ stands, closed: (sequence) => this.#step(() => then(sequence)) });
          return;
        }
        this.closedLogs.push(log);
        then(this.closedLogs.length);
      },
      projectSoon: () => {},
      broken: (error) => {
        throw error;
      },
      warn: () => {},
    };
    const readRun: ConstructorParameters<typeof Partition>[2]['readRun'] = (runId, then) => {
      this.reads.push({
        runId,
        answer: () =>
          this.#step(() => {
            const { events = [], sequence = 0 } = this.documents.get(runId) ?? {};
            const [created] = events;
            if (this.storeIsAway) then('unavailable');
            else if (this.damaged.has(runId)) then('damaged');
            else if (created?.type !== 'run_created') then(null);
            else {
              const history = { events: structuredClone([...events]), sequence };
              then(LiveRun.restore(runId, definitions.find(created.yaml).definition, history, settings));
            }
          }),
      });
    };
    const readText: ConstructorParameters<typeof Partition>[2]['readText'] = (_request, then) => then(definitions);
    const shared = { dispatch: this.dispatch, definitions, load: this.load, readRun, readText };
    this.bare = new Partition({ ...settings, ...options.settings }, ports, shared);
    this.partition = this.#checked(this.bare);
    const { runs = [], parked, usages, schedules, deleted, leftOut, neverOwned, idsTo } = options;
    if (options.start !== false)
      this.start({
        sequence: this.#sequence,
        commitNumber: 1,
        runs,
        parked,
        usages,
        schedules,
        deleted,
        leftOut,
        neverOwned,
        idsTo,
      });
  }

  /** All slices, one after the other. */
  start(restored: RestoredPartition): void {
    const opening = this.bare.opening(restored);
    while (this.#step(() => opening.next()).done !== true);
  }

  /** The same partition, each of whose methods is a step. */
  #checked(partition: Partition): Partition {
    return new Proxy(partition, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => this.#step(() => Reflect.apply(value, target, given) as unknown);
      },
    });
  }

  #step<Result>(step: () => Result): Result {
    const result = step();
    // With thousands of runs, one look at all of them after every step would be most of the test.
    this.#steps += 1;
    if (this.load.liveRuns > 100 && this.#steps % 1_000 !== 0) return result;
    this.bare.assertInvariants();
    this.dispatch.assertInvariants();
    return result;
  }

  /** A session with a lease and so many credits. */
  session(
    session: string,
    more: {
      readonly runner?: string;
      readonly credits?: number;
      readonly labels?: readonly string[];
      readonly attempts?: RunnerLease['attempts'];
    } = {},
  ): void {
    const { runner = session.split('-')[0] ?? session, credits = 0, labels = [], attempts = [] } = more;
    const lease: RunnerLease = { runner, session, labels, slots: 4, attempts };
    this.dispatch.sessionSeen(lease);
    this.partition.leaseSeen(lease);
    this.credit(session, runner, ...Array.from({ length: credits }, (_, index) => index + 1));
  }

  credit(session: string, runner: string, ...credits: number[]): void {
    this.dispatch.addCredits(this.boot, { runner, session, credits });
    this.partition.creditsChanged();
  }

  id(more: { readonly key?: string; readonly ageMs?: number } = {}): string {
    const { key = 'ada', ageMs = 0 } = more;
    return newRunId({
      now: this.now - ageMs,
      key,
      random: Uint8Array.of(0, 0, 0, 0, 0, 0, ++this.#ids >> 8, this.#ids & 255),
    });
  }

  create(
    yaml: string,
    more: { readonly id?: string } & Partial<Omit<CreateRequest, 'runId' | 'yaml'>> = {},
  ): { readonly id: string; readonly replies: Parameters<Parameters<Partition['create']>[1]>[0][] } {
    const { key = 'ada', id = this.id({ key }), origin = { kind: 'api' }, ...rest } = more;
    const replies: Parameters<Parameters<Partition['create']>[1]>[0][] = [];
    this.partition.create(
      { runId: id, tenant: 'ada', key, yaml, origin, ...rest },
      (reply) => void replies.push(reply),
    );
    return { id, replies };
  }

  /** The commit under way is stored. */
  acknowledge(): Commit {
    const next = this.appended[this.#acknowledged];
    if (next === undefined) throw new Error('no commit is under way');
    this.#acknowledged += 1;
    this.#sequence += 1;
    this.partition.acknowledged(this.#sequence);
    return next.commit;
  }

  /** All commits, those that follow from them too. */
  settle(): void {
    while (this.appended.length > this.#acknowledged) this.acknowledge();
  }

  get inFlight(): number {
    return this.appended.length - this.#acknowledged;
  }

  later(milliseconds: number): void {
    this.now += milliseconds;
    this.boot += milliseconds;
    this.partition.tick();
  }

  /** The result of the last job sent for this stage. */
  result(
    job: Job,
    status: 'success' | 'failed' = 'success',
    offer?: { readonly scheduler: string; readonly credit: number },
  ): { readonly replies: unknown[] } {
    const replies: unknown[] = [];
    const runner = this.jobs.find(({ message }) => message === job)?.runner ?? '';
    const { runId, stage: name, attempt, session, credit } = job;
    this.partition.result(
      { runId, stage: name, attempt, session, credit, status, logBytes: 1, offer },
      runner,
      (reply) => void replies.push(reply),
    );
    return { replies };
  }

  job(index: number): Job {
    const sent = this.jobs[index];
    if (sent === undefined) throw new Error(`only ${this.jobs.length} jobs were sent`);
    return sent.message;
  }

  /** Everything dirty is written and the checkpoint stands at the last commit. */
  project(): void {
    const { sequence, dirtyRuns } = this.partition;
    const dirty = this.partition.takeDirty(dirtyRuns);
    for (const { run, events } of dirty) {
      this.documents.set(run.id, { events, sequence: run.committedSequence });
      const { tenant, lineage } = run.state;
      this.standings.set(run.id, { tenant, parent: lineage?.parent ?? '', open: !run.settled });
    }
    for (const { entry } of this.partition.takeDeleted()) {
      this.documents.delete(entry.id);
      this.standings.delete(entry.id);
      this.storedIds.add(entry.id);
    }
    this.partition.projected(
      sequence,
      dirty.map(({ run }) => run),
    );
  }

  /** All documents that are asked for, and those that are asked for then. */
  answerReads(): void {
    for (let read = this.reads.shift(); read !== undefined; read = this.reads.shift()) read.answer();
  }

  events(): string[] {
    return this.appended.flatMap(({ commit }) => commit.runs.flatMap(({ events }) => events.map(({ type }) => type)));
  }
}

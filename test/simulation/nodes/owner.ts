/** One partition in one simulated scheduler: partition-owner.ts over the simulated world. */
import type { Job, JobReply, RunnerLease, StopReply, StopRequest } from '@penstock/bus';
import {
  handBack,
  loadPartition,
  openPartition,
  Partition,
  Projector,
  type AttemptLogRef,
  type JobAnswer,
  type OpenedPartition,
  type Opening,
  type Dispatch,
  type PartitionPorts,
  type SchedulerLoad,
  type StopAnswer,
} from '@penstock/scheduler/testing';
import { short } from '../world/attempts.ts';
import { SimOutage } from '../world/errors.ts';
import { SimPartitionLog } from '../world/journal.ts';
import { leased } from '../world/leases.ts';
import type { SimLedger } from '../world/ledger.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { Subjects } from '../world/subjects.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { mutatedLedger, mutatedRestore } from './mutated.ts';
import { RUNNER_ANSWER_MS } from '@penstock/bus';

const MARK_TIMEOUT_MS = 2_000;

/** The scheduler whose process the owner lives in. */
export interface OwningScheduler {
  readonly node: SimNode;
  readonly ledger: SimLedger;
  readonly dispatch: Dispatch;
  readonly load: SchedulerLoad;
  now(): number;
  bootNow(): number;
  mayAct(): boolean;
  /** Takes the picture of the leases as the broker has it, read fresh. */
  refreshSessions(leases: Iterable<RunnerLease>): void;
}

export class SimOwner {
  readonly member: string;
  readonly number: number;
  partition: Partition | undefined;
  epoch = 0;
  /** Whether it answers requests. */
  listens = false;
  readonly #scheduler: OwningScheduler;
  readonly #world: World;
  readonly #network: Network;
  readonly #subjects: Subjects;
  readonly #journal: SimPartitionLog;
  readonly #abort = new AbortController();
  readonly #onLost: () => void;
  #projector: Projector | undefined;
  #timerAt: number | undefined;

  constructor(
    { world, network, subjects }: NodeDependencies,
    scheduler: OwningScheduler,
    member: string,
    partition: number,
    onLost: () => void,
  ) {
    this.#scheduler = scheduler;
    this.#world = world;
    this.#network = network;
    this.#subjects = subjects;
    this.member = member;
    this.number = partition;
    this.#onLost = onLost;
    this.#journal = new SimPartitionLog(network, scheduler.node, partition);
  }

  async open(): Promise<boolean> {
    const world = this.#world;
    const { ledger, node, dispatch, load } = this.#scheduler;
    const { signal } = this.#abort;
    const { profile, definitions } = world;
    const opening = this.#opening(signal);
    const opened = await openPartition(opening);
    if (opened === null) return false;
    this.epoch = opened.epoch;
    const settings = {
      queueTimeoutMs: profile.queueTimeoutMs,
      logBytesMax: 1 << 24,
      workspaceGraceMs: profile.leaseMs,
      liveRunsPerKeyMax: 10_000,
    };
    const { runs, usages } = await loadPartition(opened, opening, {
      definitions,
      settings,
      log: { error: () => world.mark('run could not be restored') },
    });
    this.#scheduler.refreshSessions(
      [...(await this.#network.keysNow(node, 'runners')).values()].map(({ value }) => leased<RunnerLease>(value)),
    );
    if (signal.aborted) return false;
    if (opened.incarnation > 1) world.mark('new incarnation');
    if (runs.length > 0) world.mark('take-over with runs');
    world.trace(() => `${this.member} owns partition ${this.number}: epoch ${opened.epoch}, ${runs.length} runs`);
    const core = new Partition(
      { ...settings, partition: this.number, member: this.member, epoch: opened.epoch },
      this.#ports(opened),
      { dispatch, definitions, load },
    );
    this.partition = core;
    this.#projector = new Projector({
      partition: core,
      incarnation: opened.incarnation,
      journal: this.#journal,
      load,
      ledger: mutatedLedger(world.mutation, ledger),
      log: { warn: () => world.mark('projection failed') },
      clock: {
        bootNow: () => this.#scheduler.bootNow(),
        pause: (milliseconds, aborted) => world.pause(node, milliseconds, aborted),
        turn: () => world.pause(node, 0, signal),
      },
    });
    this.listens = true;
    core.start(mutatedRestore(world.mutation, opened, { runs, usages }));
    this.#subjects.publishOpened(node, this.number);
    this.#stepped();
    return true;
  }

  tick(): void {
    this.partition?.tick();
    this.#projector?.tick();
    this.#stepped();
  }

  /** A request has been handled: it may have set a timer. */
  tickSoon(): void {
    this.#stepped();
  }

  /** Hands the partition over. True: the log names this member no more; false: to be tried again. */
  async release(signal: AbortSignal): Promise<boolean> {
    const world = this.#world;
    const core = this.partition;
    let known: Pick<OpenedPartition, 'epoch' | 'sequence' | 'commitNumber' | 'idsTo'> | undefined;
    try {
      if (core?.open === true) {
        const over = AbortSignal.any([signal, this.#abort.signal]);
        await world.promise<void>((resolve) => {
          if (over.aborted) resolve();
          over.addEventListener('abort', () => resolve(), { once: true });
          core.release(resolve);
        });
        if (!over.aborted)
          known = {
            epoch: this.epoch,
            sequence: core.sequence,
            commitNumber: core.commitNumber,
            idsTo: core.idsTo,
          };
        core.close();
        this.listens = false;
      } else {
        this.#abort.abort();
        world.mark('partition handed back that was not open');
      }
      const isFree = await handBack(this.#opening(signal), known);
      if (isFree && this.epoch > 0) this.#subjects.publishReleased(this.#scheduler.node, this.number);
      return isFree;
    } catch (error) {
      if (!(error instanceof SimOutage)) throw error;
      world.mark('hand-over failed');
      return false;
    } finally {
      this.forget();
    }
  }

  #opening(signal: AbortSignal): Opening {
    const world = this.#world;
    const { ledger, node } = this.#scheduler;
    return {
      partition: this.number,
      member: this.member,
      log: new SimPartitionLog(this.#network, node, this.number),
      ledger,
      signal,
      isGone: async (member: string) =>
        world.mutation === 'opens-by-force' || !(await this.#network.keysNow(node, 'members')).has(member),
      now: () => this.#scheduler.now(),
      newCommitId: () => world.newId(),
    };
  }

  forget(): void {
    this.listens = false;
    this.partition?.close();
    this.#abort.abort();
    void this.#projector?.stop();
  }

  /** Its process is no more. */
  crash(): void {
    this.listens = false;
    this.#abort.abort();
  }

  /** A step of the partition is over. Where its log has lost its end, two runs of a group may be found that both go on. */
  #stepped(): void {
    if (!this.#world.witness.isPartitionDisturbed(this.number)) this.partition?.assertInvariants();
    this.#scheduler.dispatch.assertInvariants();
    this.#armTimer();
  }

  #armTimer(): void {
    const at = this.partition?.nextWake();
    if (at === undefined || this.partition?.open !== true || at === this.#timerAt) return;
    this.#timerAt = at;
    this.#scheduler.node.after(Math.max(1, at - this.#scheduler.bootNow()), () => {
      if (this.#timerAt !== at) return;
      this.#timerAt = undefined;
      this.tick();
    });
  }

  #ports({ epoch }: OpenedPartition): PartitionPorts {
    const world = this.#world;
    const scheduler = this.#scheduler;
    const { node } = scheduler;
    return {
      now: () => scheduler.now(),
      bootNow: () => (world.mutation === 'waits-by-the-wall-clock' ? scheduler.now() : scheduler.bootNow()),
      newCommitId: () => world.newId(),
      append: (bytes, options) => {
        if (world.mutation === 'acts-before-acknowledgement')
          node.after(0, () => this.partition?.acknowledged(options.expectedSequence));
        this.#journal.appendThen(bytes, options, this.#abort.signal, (result) => {
          if (result.ok) {
            world.witness.acknowledged(this.number, epoch, options.commitId, result.sequence);
            if (world.mutation !== 'acts-before-acknowledgement') this.partition?.acknowledged(result.sequence);
            this.#stepped();
            return;
          }
          this.forget();
          this.#onLost();
        });
      },
      mayAct: () => scheduler.mayAct(),
      publishEvents: (message) => this.#subjects.publishEvents(node, this.number, message),
      sendJob: (runner, job, answered) => this.#sendJob(runner, job, answered),
      sendStop: (runner, request, answered) => this.#sendStop(runner, request, answered),
      release: (runner, runIds) => {
        for (const runId of runIds) world.witness.runClosed(runId);
        this.#subjects.toRunner(node, runner, (target) => target.release({ runIds }));
      },
      isStored: (runId, then) => {
        world.mark('create asks the store');
        this.#network.askStore(
          node,
          (store) => store.documents.has(runId),
          then,
          () => then('unavailable'),
        );
      },
      closeLog: (log, then) => this.#closeLog(log, then),
      projectSoon: () => this.#projector?.projectSoon(),
      // A fault of the code: the simulation ends with it.
      broken: (error) => world.fail(error instanceof Error ? error : new Error(String(error))),
      warn: (fields, message) => world.trace(() => `${this.member}: ${message} ${JSON.stringify(fields)}`),
    };
  }

  /** Until the broker has answered; a mark that was stored twice does no harm, for the first one counts (P21). */
  #closeLog(log: AttemptLogRef, then: (sequence: number) => void): void {
    this.#network.askBroker(
      this.#scheduler.node,
      (broker) => broker.markLog(log),
      MARK_TIMEOUT_MS,
      (sequence) => {
        if (this.#abort.signal.aborted) return;
        if (sequence === undefined) this.#closeLog(log, then);
        else then(sequence);
        this.#stepped();
      },
    );
  }

  #sendJob(runner: string, job: Job, answered: (answer: JobAnswer) => void): void {
    const world = this.#world;
    world.witness.jobSent(job, this.epoch);
    world.trace(() => `${this.member} sends ${short(job)} to ${runner}${job.repeated ? ' again' : ''}`);
    const mutated = world.mutation === 'late-no-responders-frees' && job.repeated;
    this.#subjects.requestRunner<JobReply>(
      this.#scheduler.node,
      runner,
      RUNNER_ANSWER_MS,
      (target, reply) => target.job(job, reply),
      (reply) => {
        if (typeof reply !== 'string') answered(reply.answer);
        else {
          if (reply === 'no-responders')
            world.mark(job.repeated ? 'no responders to a repeated grant' : 'no responders to a first grant');
          answered(mutated ? 'refused' : reply);
        }
      },
    );
  }

  #sendStop(runner: string, request: StopRequest, answered: (answer: StopAnswer) => void): void {
    const world = this.#world;
    world.trace(() => `${this.member} stops ${short(request)} at ${runner}`);
    world.witness.stopSent(request);
    this.#subjects.requestRunner<StopReply>(
      this.#scheduler.node,
      runner,
      RUNNER_ANSWER_MS,
      (target, reply) => target.stop(request, reply),
      (reply) => {
        answered(typeof reply === 'string' ? 'no-answer' : reply.answer);
      },
    );
  }
}

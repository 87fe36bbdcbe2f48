/**
 * A runner, its guard and its processes, by the rules that P10 to P16 and P19 set for it. The guard is a process of its
 * own: it goes on while the runner is frozen, and ends the session's processes at its deadline or when the runner dies.
 */
import {
  subjects,
  type AttemptRef,
  type Demand,
  type Job,
  type JobReply,
  type OpenReply,
  type PullReply,
  type PullRequest,
  type Release,
  type ResultReply,
  type ResultRequest,
  type RunnerLease,
  type StopReply,
  type StopRequest,
} from '@penstock/bus';
import { keyOf, refOf, type Process } from '../world/attempts.ts';
import { SimLease } from '../world/leases.ts';
import { SimNode } from '../world/sim-node.ts';
import type { Exchange } from '../world/exchange.ts';
import type { Network } from '../world/network.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import type { Processes } from './processes.ts';
import { FENCE_MS, CREDIT_MS, RESULT_REPEAT_MS, STOPS_KEPT_MS, RUNNER_LEASE_RENEWALS } from '@penstock/bus';

const GRACE_MS = 10_000;
const OPEN_ASK_MS = 20_000;

interface Held {
  readonly ref: AttemptRef;
  readonly job: Job;
  process: Process | undefined;
  stopping: 'cancelled' | 'timeout' | undefined;
}

interface Spooled {
  readonly request: Omit<ResultRequest, 'offer'>;
  readonly partition: number;
  /** The credit that its slot offers, once it does. */
  offer: { readonly scheduler: string; readonly credit: number } | undefined;
}

interface Session {
  readonly id: string;
  readonly lease: SimLease;
  deadline: number;
  guardFired: boolean;
  active: boolean;
  readonly credits: Map<number, { readonly scheduler: string; readonly expiresAt: number }>;
  readonly held: Map<string, Held>;
  readonly stops: Map<string, number>;
  nextCredit: number;
}

export class SimRunner {
  readonly node: SimNode;
  readonly labels: readonly string[];
  readonly slots: number;
  /** Survives the process. */
  readonly disk = { results: new Map<string, Spooled>(), workspaces: new Map<string, number>() };
  readonly #world: World;
  readonly #network: Network;
  readonly #exchange: Exchange;
  readonly #processes: Processes;
  #session: Session | undefined;
  /** Members as watched, and who announced demand last. */
  readonly #members = new Set<string>();
  #wanted: string | undefined;

  constructor(
    { world, network, exchange, processes }: NodeDependencies,
    name: string,
    labels: readonly string[],
    slots: number,
  ) {
    this.#world = world;
    this.#network = network;
    this.#exchange = exchange;
    this.#processes = processes;
    this.node = new SimNode(name, world.timeline);
    this.labels = labels;
    this.slots = slots;
  }

  get name(): string {
    return this.node.name;
  }

  /** Whether it can be reached under its subjects. */
  get listens(): boolean {
    return this.node.alive && this.#session?.active === true;
  }

  start(): void {
    this.#members.clear();
    this.#network.broker.watch(this.node, 'members', (event) => {
      if (event.kind === 'put') this.#members.add(event.key);
      else this.#members.delete(event.key);
    });
    const listen = <M, R>(subject: string, handle: (message: M, reply: (answer: R) => void) => void): void =>
      void this.#exchange.listen(this.node, subject, (text, _subject, reply) => {
        if (this.listens)
          handle(JSON.parse(text) as M, (answer) => reply({ kind: 'reply', text: JSON.stringify(answer) }));
      });
    listen<Job, JobReply>(subjects.job(this.name), (job, reply) => this.job(job, reply));
    listen<StopRequest, StopReply>(subjects.stop(this.name), (request, reply) => this.stop(request, reply));
    listen<Release, never>(subjects.release(this.name), (release) => this.release(release));
    listen<Demand, never>(subjects.demand('*'), ({ scheduler }) => this.demandHeard(scheduler));
    this.#begin();
    this.#everySecond(0);
    this.#repeatResults();
    this.#askOpen();
  }

  crash(): void {
    const session = this.#session;
    this.#session = undefined;
    this.node.crash();
    // The guard reads the end of its pipe.
    if (session !== undefined) this.#world.after(this.#world.random.between(0, 50), () => this.#fire(session));
  }

  /** Demand of a scheduler, announced every second. */
  demandHeard(scheduler: string): void {
    this.#wanted = scheduler;
  }

  // --- Session, lease and guard ------------------------------------------------------------------------------------

  #begin(): void {
    const { random, profile } = this.#world;
    const id = `${this.name}-${this.#world.newId()}`;
    const lease = new SimLease(this.#network, this.node, 'runners', `${this.name}.${id}`, profile.leaseMs);
    const session: Session = {
      id,
      lease,
      deadline: 0,
      guardFired: false,
      active: false,
      credits: new Map(),
      held: new Map(),
      stops: new Map(),
      nextCredit: 1,
    };
    this.#session = session;
    lease.write(this.#leaseValue(session), (result) => {
      if (this.#session !== session) return;
      if (result.kind !== 'accepted') {
        this.node.after(random.between(100, 1_000), () => {
          if (this.#session === session) this.#begin();
        });
        return;
      }
      session.active = true;
      this.#renewed(session, result.sentAt);
      this.#renewLater(session);
      this.#world.trace(() => `${this.name} begins session ${id}`);
    });
  }

  #renewLater(session: Session): void {
    this.node.after(this.#world.profile.leaseMs / RUNNER_LEASE_RENEWALS, () => {
      if (this.#session !== session || session.guardFired || session.lease.over) return;
      if (session.lease.busy) {
        this.#renewLater(session);
        return;
      }
      session.lease.write(this.#leaseValue(session), (result) => {
        if (this.#session !== session) return;
        if (result.kind === 'accepted') this.#renewed(session, result.sentAt);
        else if (result.kind === 'lost') this.#fire(session);
      });
      this.#renewLater(session);
    });
  }

  #renewed(session: Session, sentAt: number): void {
    const world = this.#world;
    const from = world.mutation === 'guard-counts-from-the-line' ? world.now : sentAt;
    const deadline = from + world.profile.leaseMs - FENCE_MS;
    session.deadline = Math.max(session.deadline, deadline);
    world.after(Math.max(0, deadline - world.now), () => {
      if (session.deadline <= world.now) this.#fire(session);
    });
  }

  /** The guard ends the session's processes, at once and for good. The runner hears of it when it can. */
  #fire(session: Session): void {
    if (session.guardFired) return;
    session.guardFired = true;
    session.active = false;
    if (this.#world.mutation !== 'no-guard') this.#processes.endSession(session.id);
    const { life } = this.node;
    if (session === this.#session) this.#world.mark('session fenced');
    this.node.handle(life, () => {
      if (this.#session === session) this.#begin();
    });
  }

  #leaseValue(session: Session): RunnerLease {
    const spooled = [...this.disk.results.values()]
      .map(({ request }) => request)
      .filter((request) => request.session === session.id);
    const attempts = [...[...session.held.values()].map(({ ref }) => ref), ...spooled.map(refOf)];
    return { runner: this.name, session: session.id, labels: this.labels, slots: this.slots, attempts };
  }

  // --- Credit ------------------------------------------------------------------------------------------------------

  #everySecond(count: number): void {
    const { random } = this.#world;
    this.node.after(count === 0 ? random.between(0, 200) : random.between(700, 1_100), () => {
      this.#offer();
      const session = this.#session;
      for (const [key, until] of session?.stops ?? []) if (until < this.#world.now) session?.stops.delete(key);
      this.#everySecond(count + 1);
    });
  }

  #offer(): void {
    const session = this.#session;
    if (session === undefined || !session.active || session.guardFired) return;
    const { now, random } = this.#world;
    for (const [credit, { expiresAt }] of session.credits) if (expiresAt <= now) session.credits.delete(credit);
    this.#moveCredits(session);
    const free = this.slots - session.held.size - session.credits.size;
    const scheduler =
      this.#wanted !== undefined && this.#members.has(this.#wanted)
        ? this.#wanted
        : this.#members.size > 0
          ? random.pick([...this.#members])
          : undefined;
    if (free <= 0 || scheduler === undefined) return;
    const credits = Array.from({ length: free }, () => this.#newCredit(session, scheduler));
    this.#ask<PullReply>(
      subjects.pull(scheduler, this.name),
      { session: session.id, runner: this.name, labels: this.labels, credits, withdraw: [] } satisfies PullRequest,
      () => {},
    );
  }

  /** Takes credits back from a scheduler that is not the one with demand, or from one that has left. */
  #moveCredits(session: Session): void {
    const from = new Map<string, number[]>();
    for (const [credit, { scheduler }] of session.credits) {
      if (scheduler === this.#wanted || this.#wanted === undefined) continue;
      if (!this.#members.has(scheduler) || this.#world.random.chance(0.5))
        from.set(scheduler, [...(from.get(scheduler) ?? []), credit]);
    }
    for (const [scheduler, withdraw] of from) {
      this.#ask<PullReply>(
        subjects.pull(scheduler, this.name),
        { session: session.id, runner: this.name, labels: this.labels, credits: [], withdraw },
        (reply) => {
          for (const credit of reply.withdrawn)
            if (session.credits.delete(credit)) this.#world.mark('credit withdrawn');
        },
      );
    }
    this.#wanted = undefined;
  }

  #newCredit(session: Session, scheduler: string): number {
    const credit = session.nextCredit++;
    session.credits.set(credit, { scheduler, expiresAt: this.#world.now + CREDIT_MS });
    return credit;
  }

  // --- Grants and stops ----------------------------------------------------------------------------------------------

  job(job: Job, reply: (reply: JobReply) => void): void {
    const session = this.#session;
    if (session === undefined || job.session !== session.id || session.guardFired) return;
    const answer = this.#take(session, job);
    reply({ ...refOf(job), answer });
  }

  #take(session: Session, job: Job): JobReply['answer'] {
    const key = keyOf(job);
    if (session.held.has(key) || this.disk.results.has(key)) return 'held';
    const credit = session.credits.get(job.credit);
    if (session.stops.has(key) && this.#world.mutation !== 'stops-forgotten') {
      this.#world.mark('grant refused after its stop');
      return 'refused';
    }
    if (credit === undefined || credit.expiresAt <= this.#world.now) {
      this.#world.mark('grant refused');
      return 'refused';
    }
    if (job.repeated) this.#world.mark('repeated grant taken');
    session.credits.delete(job.credit);
    const held: Held = { ref: refOf(job), job, process: undefined, stopping: undefined };
    session.held.set(key, held);
    this.node.after(this.#world.random.between(0, 5), () => this.#startProcess(session, held));
    return 'accepted';
  }

  #startProcess(session: Session, held: Held): void {
    if (this.#session !== session || session.guardFired || session.held.get(keyOf(held.ref)) !== held) return;
    const { random, profile } = this.#world;
    const { job } = held;
    if (job.workspace === 'shared') this.disk.workspaces.set(job.runId, job.partition);
    const process: Process = { ref: held.ref, runner: this.name };
    held.process = process;
    this.#processes.start(process);
    const hangs = !this.#world.healed && random.chance(profile.stageHangs);
    const lastsMs = hangs ? 120_000 : random.exponential(profile.stageMs);
    if (lastsMs > job.timeoutMs && !(profile.runnersLazy && hangs))
      this.#endLater(session, held, job.timeoutMs, 'timeout');
    this.#endLater(session, held, lastsMs, random.chance(profile.stageFails) ? 'exit' : undefined);
  }

  #endLater(session: Session, held: Held, afterMs: number, reason: 'timeout' | 'exit' | 'cancelled' | undefined): void {
    const process = held.process;
    this.#world.after(afterMs, () => {
      // The process ends by itself, whatever its runner does; the runner sees it when it can.
      if (process === undefined || !this.#processes.end(process)) return;
      this.node.handle(this.node.life, () => this.#ended(session, held, reason));
    });
  }

  #ended(session: Session, held: Held, reason: 'timeout' | 'exit' | 'cancelled' | undefined): void {
    if (this.#session !== session || session.held.get(keyOf(held.ref)) !== held) return;
    const why = held.stopping ?? reason;
    const request = {
      ...held.ref,
      status: why === undefined ? 'success' : 'failed',
      reason: why,
      exitCode: why === 'exit' ? 1 : why === undefined ? 0 : undefined,
      logBytes: 10,
    } as const;
    session.held.delete(keyOf(held.ref));
    const spooled: Spooled = { request, partition: held.job.partition, offer: undefined };
    this.disk.results.set(keyOf(held.ref), spooled);
    this.#sendResult(spooled);
  }

  stop(request: StopRequest, reply: (reply: StopReply) => void): void {
    const session = this.#session;
    if (session === undefined || request.session !== session.id || session.guardFired) return;
    const key = keyOf(request);
    session.stops.set(key, this.#world.now + STOPS_KEPT_MS);
    const held = session.held.get(key);
    if (this.disk.results.has(key)) {
      reply({ ...refOf(request), answer: 'stopping' });
    } else if (held === undefined || held.process === undefined) {
      if (held !== undefined) session.held.delete(key);
      this.#world.mark('stop answered gone');
      this.#processes.goneSaid(request);
      reply({ ...refOf(request), answer: 'gone' });
    } else {
      if (held.stopping === undefined) {
        held.stopping = request.reason;
        const { random } = this.#world;
        // SIGTERM; most obey, the others get SIGKILL after the grace.
        this.#endLater(session, held, random.chance(0.7) ? random.between(0, 200) : GRACE_MS, request.reason);
      }
      reply({ ...refOf(request), answer: 'stopping' });
    }
  }

  // --- Results -------------------------------------------------------------------------------------------------------

  #repeatResults(): void {
    this.node.after(RESULT_REPEAT_MS, () => {
      for (const spooled of this.disk.results.values()) this.#sendResult(spooled);
      this.#repeatResults();
    });
  }

  #sendResult(spooled: Spooled): void {
    const session = this.#session;
    const key = keyOf(spooled.request);
    if (session?.active === true && spooled.request.session === session.id) {
      if (spooled.offer !== undefined && !session.credits.has(spooled.offer.credit)) spooled.offer = undefined;
      const free = this.slots - session.held.size - session.credits.size;
      const [scheduler] = this.#members;
      if (spooled.offer === undefined && free > 0 && scheduler !== undefined)
        spooled.offer = {
          scheduler,
          credit: this.#newCredit(session, scheduler),
        };
    } else spooled.offer = undefined;
    this.#ask<ResultReply>(
      subjects.result(spooled.partition, this.name),
      { ...spooled.request, ...(spooled.offer === undefined ? {} : { offer: spooled.offer }) },
      (answer) => {
        if (!answer.ok || !this.disk.results.delete(key)) return;
        this.#world.witness.resultAnswered(spooled.request, answer.answer);
        this.#world.mark(`result ${answer.answer}`);
      },
    );
  }

  // --- Workspaces ------------------------------------------------------------------------------------------------------

  release({ runIds }: Release): void {
    for (const runId of runIds) this.#removeWorkspace(runId);
  }

  #askOpen(): void {
    const { random } = this.#world;
    this.node.after(random.between(OPEN_ASK_MS / 2, OPEN_ASK_MS), () => {
      const byPartition = new Map<number, string[]>();
      for (const [runId, partition] of this.disk.workspaces)
        byPartition.set(partition, [...(byPartition.get(partition) ?? []), runId]);
      for (const [partition, runIds] of byPartition) {
        this.#ask<OpenReply>(subjects.owner(partition, 'open'), { runIds }, (answer) => {
          if (!answer.ok) return;
          for (const runId of runIds) if (!answer.open.includes(runId)) this.#removeWorkspace(runId);
        });
      }
      this.#askOpen();
    });
  }

  #ask<R>(subject: string, body: unknown, then: (answer: R) => void): void {
    this.#exchange.request(this.node, subject, JSON.stringify(body), 2_000, (answer) => {
      if (answer.kind === 'reply') then(JSON.parse(answer.text) as R);
    });
  }

  #removeWorkspace(runId: string): void {
    if (this.disk.workspaces.delete(runId)) this.#world.witness.workspaceRemoved(runId, this.name);
  }
}

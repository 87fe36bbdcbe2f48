/**
 * A simulated world: schedulers, runners, gateways, a broker and a store under one clock and one source of chance. The
 * same seed makes the same world, step by step. It owns the network between them and the faults; what must hold is the
 * oracle's business.
 */
import type { CommittedEvents, PullReply, PullRequest } from '@penstock/bus';
import type { Partition } from '@penstock/scheduler/testing';
import { SimBroker, type Bucket, type KvEntry } from './broker.ts';
import { Clients } from './clients.ts';
import { SimOutage, Violation } from './errors.ts';
import { Faults } from './faults.ts';
import { SimStore } from './ledger.ts';
import { Marks } from './marks.ts';
import type { Mutation } from './mutations.ts';
import { Oracle } from './oracle.ts';
import { SimDefinitions } from './pipelines.ts';
import { Processes } from './processes.ts';
import { drawProfile, type Profile } from './profile.ts';
import { Random } from './random.ts';
import { SimRunner } from './runner-node.ts';
import { SimScheduler } from './scheduler-node.ts';
import { SimNode } from './sim-node.ts';
import { Timeline } from './timeline.ts';

/** 2026-11-01 and 2026-12-01 at 00:00 UTC: virtual time zero is the first of them, or as long before the second as the world wants. */
const EPOCH_MS = 1_793_491_200_000;
const NEXT_MONTH_MS = EPOCH_MS + 30 * 24 * 60 * 60 * 1000;
/** No message is under way for longer: connections that are stuck are closed before. */
const SLOW_MS_MAX = 15_000;
const STEPS_MAX = 400_000;
/** Once it is healed, a world has so long to end every run and to forget it. */
const HEALED_MS_MAX = 900_000;

export interface WorldOptions {
  readonly mutation?: Mutation | undefined;
  readonly traced?: boolean | undefined;
  readonly profile?: Partial<Profile> | undefined;
}

export class World {
  readonly seed: number;
  readonly mutation: Mutation | undefined;
  readonly random: Random;
  readonly profile: Profile;
  readonly timeline = new Timeline();
  readonly marks = new Marks();
  readonly definitions = new SimDefinitions();
  readonly store = new SimStore();
  readonly broker: SimBroker;
  readonly oracle: Oracle;
  readonly processes: Processes;
  readonly schedulers: SimScheduler[];
  readonly runners: SimRunner[];
  readonly gateways: SimNode[];
  readonly clients: Clients;
  readonly faults: Faults;
  readonly lines: string[] = [];
  journalUsed = 0;
  healed = false;
  steps = 0;
  #ids = 0;
  #failure: Error | undefined;
  #promisesMoved = false;
  readonly #traced: boolean;

  constructor(seed: number, options: WorldOptions = {}) {
    this.seed = seed;
    this.mutation = options.mutation;
    this.#traced = options.traced === true;
    this.random = new Random(seed);
    this.profile = { ...drawProfile(this.random), ...options.profile };
    this.broker = new SimBroker(this);
    this.oracle = new Oracle(this);
    this.processes = new Processes(this);
    const { profile } = this;
    this.journalUsed = profile.journalUsed;
    this.schedulers = Array.from(
      { length: profile.schedulers },
      (_, index) => new SimScheduler(this, `scheduler${index}`),
    );
    this.runners = Array.from(
      { length: profile.runners },
      (_, index) =>
        new SimRunner(
          this,
          `runner${index}`,
          index === 0 ? ['linux'] : this.random.chance(0.5) ? ['linux', 'big'] : ['linux', 'mac'],
          1 + this.random.int(3),
        ),
    );
    this.gateways = [new SimNode('gateway0', this.timeline), new SimNode('gateway1', this.timeline)];
    this.clients = new Clients(this);
    this.faults = new Faults(this);
  }

  // --- Running -----------------------------------------------------------------------------------------------------

  /** Lives the world from its beginning until everything in it is done. Throws the Violation that was found. */
  async run(): Promise<void> {
    const { profile } = this;
    for (const scheduler of this.schedulers) this.after(this.random.between(0, 500), () => scheduler.start());
    for (const runner of this.runners) this.after(this.random.between(0, 500), () => runner.start());
    this.clients.start();
    this.faults.start();
    this.after(profile.quietMs + profile.illMs, () => {
      this.healed = true;
      this.trace(() => '--- the world is healed ---');
      this.faults.heal();
    });
    for (; !this.#isDone(); this.steps++) {
      const task = this.timeline.next();
      if (task === undefined) throw new Violation('progress', 'nothing is planned any more, and not all is done');
      task();
      if (this.#promisesMoved) {
        this.#promisesMoved = false;
        await settleMicrotasks();
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.steps > STEPS_MAX) throw new Violation('progress', `${STEPS_MAX} steps, and not all is done`);
    }
    this.oracle.checkEnd();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #checkedAt = 0;

  #isDone(): boolean {
    if (!this.healed || this.now < this.#checkedAt) return false;
    this.#checkedAt = this.now + 500;
    const missing = this.oracle.missing();
    if (missing === undefined) return true;
    if (this.now > this.profile.quietMs + this.profile.illMs + HEALED_MS_MAX)
      throw new Violation('progress', `${HEALED_MS_MAX / 60_000} minutes after all faults have ended: ${missing}`);
    return false;
  }

  get now(): number {
    return this.timeline.now;
  }

  wallClock(): number {
    const { monthEndsInMs } = this.profile;
    return Math.floor((monthEndsInMs === 0 ? EPOCH_MS : NEXT_MONTH_MS - monthEndsInMs) + this.timeline.now);
  }

  after(delayMs: number, task: () => void): void {
    this.timeline.after(delayMs, task);
  }

  newId(): string {
    return (++this.#ids).toString(36);
  }

  mark(name: string): void {
    this.marks.hit(name);
  }

  check(holds: boolean, rule: string, message: string): void {
    if (!holds) this.fail(new Violation(rule, message));
  }

  /** Kept, for what throws inside the code under test may be caught there. */
  fail(error: Error): void {
    this.#failure ??= error;
  }

  trace(line: () => string): void {
    if (!this.#traced) return;
    this.lines.push(`${(this.now / 1000).toFixed(3).padStart(9)} ${line()}`);
  }

  // --- Promises, for the parts under test that are asynchronous -----------------------------------------------------

  promise<T>(start: (resolve: (value: T) => void, reject: (reason: Error) => void) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      start(
        (value) => {
          this.#promisesMoved = true;
          resolve(value);
        },
        (reason) => {
          this.#promisesMoved = true;
          reject(reason);
        },
      );
    });
  }

  /** Rejects when the signal aborts first. */
  abortable<T>(signal: AbortSignal | undefined, start: (resolve: (value: T) => void) => void): Promise<T> {
    return this.promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(new SimOutage('aborted'));
        return;
      }
      signal?.addEventListener('abort', () => reject(new SimOutage('aborted')), { once: true });
      start(resolve);
    });
  }

  pause(node: SimNode, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.promise((resolve) => {
      if (signal.aborted) resolve();
      else {
        signal.addEventListener('abort', () => resolve(), { once: true });
        node.after(milliseconds, resolve);
      }
    });
  }

  /** Work of a process that nobody waits for: its failure is ours, unless the process is no more. */
  settle(node: SimNode, work: Promise<unknown>): Promise<void> {
    const { life } = node;
    this.#promisesMoved = true;
    return work.then(
      () => {},
      (error: unknown) => {
        if (node.alive && node.life === life) this.fail(error instanceof Error ? error : new Error(String(error)));
      },
    );
  }

  // --- Network -----------------------------------------------------------------------------------------------------

  latency(): number {
    const { random, profile, healed } = this;
    if (!healed && random.chance(profile.slow)) {
      this.mark('slow message');
      return Math.min(random.exponential(profile.slowMs), SLOW_MS_MAX);
    }
    return random.exponential(profile.latencyMs);
  }

  /** A message through the broker. Lost without a word where the way is not open. */
  send(from: SimNode, to: SimNode, deliver: () => void): void {
    const { profile, random } = this;
    if (!this.#isOpen(from) || this.#drops(profile.lost)) {
      this.mark('message lost');
      return;
    }
    const arrive = (): void => {
      const { life } = to;
      if (this.#isOpen(to)) to.handle(life, deliver);
    };
    this.after(this.latency(), arrive);
    if (!this.healed && random.chance(profile.duplicated)) {
      this.mark('message doubled');
      this.after(this.latency(), arrive);
    }
  }

  /** `done` gets undefined where there was no answer in time; the work may have been done all the same, or be done later. */
  askBroker<T>(
    node: SimNode,
    work: (broker: SimBroker) => T,
    timeoutMs: number,
    done: (answer: T | undefined) => void,
  ): void {
    const { profile } = this;
    let answered = false;
    const answer = (value: T | undefined): void => {
      if (answered) return;
      answered = true;
      done(value);
    };
    node.after(timeoutMs, () => answer(undefined));
    if (!this.#isOpen(node) || this.#drops(profile.requestLost)) return;
    const { life } = node;
    this.after(this.latency(), () => {
      if (!this.broker.up) return;
      const value = work(this.broker);
      if (this.#drops(profile.answerLost)) {
        this.mark("broker's answer lost");
        return;
      }
      this.after(this.latency(), () => {
        if (this.#isOpen(node)) node.handle(life, () => answer(value));
      });
    });
  }

  askStore<T>(
    node: SimNode,
    work: (store: SimStore) => T,
    done: (answer: T) => void,
    failed: (error: Error) => void,
  ): void {
    const { profile, random } = this;
    const { life } = node;
    const fail = (why: string): void =>
      this.after(random.exponential(profile.storeLatencyMs), () => node.handle(life, () => failed(new SimOutage(why))));
    if (!node.linked || !this.store.up || this.#drops(profile.storeFails / 2)) {
      fail('the store cannot be reached');
      return;
    }
    this.after(random.exponential(profile.storeLatencyMs), () => {
      if (!this.store.up) {
        fail('the store has gone');
        return;
      }
      const value = work(this.store);
      if (this.#drops(profile.storeFails / 2)) {
        this.mark("store's answer lost");
        fail('the store did not answer');
        return;
      }
      this.after(random.exponential(profile.storeLatencyMs), () => node.handle(life, () => done(value)));
    });
  }

  keysNow(node: SimNode, bucket: Bucket): Promise<Map<string, KvEntry>> {
    return this.promise((resolve) => {
      const ask = (): void =>
        this.askBroker(
          node,
          (broker) => broker.all(bucket),
          2_000,
          (keys) => {
            if (keys === undefined) node.after(200, ask);
            else resolve(keys);
          },
        );
      ask();
    });
  }

  #isOpen(node: SimNode): boolean {
    return this.broker.up && node.linked;
  }

  #drops(probability: number): boolean {
    return !this.healed && this.random.chance(probability);
  }

  // --- Subjects ----------------------------------------------------------------------------------------------------

  /** A request to whoever owns the partition, or thinks so: the first answer counts. */
  askOwner<R>(
    from: SimNode,
    partition: number,
    ask: (owner: Partition, reply: (reply: R) => void) => void,
    answered: (reply: R) => void,
    noResponders?: () => void,
  ): void {
    if (!this.#isOpen(from) || this.#drops(this.profile.lost)) return;
    const { life } = from;
    let done = false;
    this.after(this.latency(), () => {
      if (!this.broker.up) return;
      const owners = this.schedulers.flatMap((scheduler) => {
        const owner = scheduler.owners.get(partition);
        return scheduler.node.alive && owner?.listens === true ? [{ scheduler, owner }] : [];
      });
      if (owners.length === 0) {
        this.mark('no owner responds');
        this.after(this.latency(), () => from.handle(life, () => noResponders?.()));
      }
      if (owners.length > 1) this.mark('two owners listen');
      for (const { scheduler, owner } of owners) {
        this.send(scheduler.node, scheduler.node, () => {
          if (!owner.listens || owner.partition === undefined) return;
          ask(owner.partition, (reply) =>
            this.send(scheduler.node, from, () => {
              if (done || from.life !== life) return;
              done = true;
              answered(reply);
            }),
          );
          owner.tickSoon();
        });
      }
    });
  }

  ownerMember(partition: number): string | undefined {
    return this.schedulers.find((scheduler) => scheduler.owners.get(partition)?.listens)?.member;
  }

  requestRunner<R>(
    from: SimNode,
    name: string,
    timeoutMs: number,
    ask: (runner: SimRunner, reply: (reply: R) => void) => void,
    answered: (reply: R | 'no-responders' | 'no-answer') => void,
  ): void {
    let done = false;
    const answer = (reply: R | 'no-responders' | 'no-answer'): void => {
      if (done) return;
      done = true;
      answered(reply);
    };
    from.after(timeoutMs, () => answer('no-answer'));
    if (!this.#isOpen(from) || this.#drops(this.profile.lost)) return;
    const { life } = from;
    this.after(this.latency(), () => {
      if (!this.broker.up) return;
      const runner = this.runners.find((candidate) => candidate.name === name);
      // A connection that is cut is noticed by the broker after a while; until then what is sent there is lost.
      const noticed = runner?.node.linked === false && this.now - runner.node.cutAt > 3_000;
      if (runner === undefined || !runner.listens || noticed) {
        this.after(this.latency(), () => {
          if (this.#isOpen(from)) from.handle(life, () => answer('no-responders'));
        });
        return;
      }
      this.send(runner.node, runner.node, () =>
        ask(runner, (reply) =>
          this.send(runner.node, from, () => {
            if (from.life === life) answer(reply);
          }),
        ),
      );
    });
  }

  toRunner(from: SimNode, name: string, deliver: (runner: SimRunner) => void): void {
    const runner = this.runners.find((candidate) => candidate.name === name);
    if (runner !== undefined)
      this.send(from, runner.node, () => {
        if (runner.listens) deliver(runner);
      });
  }

  pull(from: SimNode, member: string, request: PullRequest, answered: (reply: PullReply) => void): void {
    const { life } = from;
    for (const scheduler of this.schedulers) {
      if (scheduler.member !== member) continue;
      this.send(from, scheduler.node, () => {
        if (scheduler.member === member)
          scheduler.pull(request, (reply) =>
            this.send(scheduler.node, from, () => {
              if (from.life === life) answered(reply);
            }),
          );
      });
    }
  }

  announceDemand(scheduler: SimScheduler): void {
    const { member } = scheduler;
    for (const runner of this.runners) this.send(scheduler.node, runner.node, () => runner.demandHeard(member));
  }

  publishEvents(from: SimNode, partition: number, message: CommittedEvents): void {
    this.oracle.shown(message);
    for (const gateway of this.gateways)
      this.send(from, gateway, () => this.clients.eventsArrived(gateway, partition, message));
  }

  publishReleased(from: SimNode, partition: number): void {
    for (const scheduler of this.schedulers) this.send(from, scheduler.node, () => scheduler.released(partition));
  }

  publishOpened(from: SimNode, partition: number): void {
    for (const gateway of this.gateways) this.send(from, gateway, () => this.clients.ownerOpened(gateway, partition));
  }
}

/** Everything that promises have set going runs to its next wait for the world. */
function settleMicrotasks(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

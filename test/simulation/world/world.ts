/**
 * What all parts of a simulated world share: one clock, one source of chance, the profile of its faults, and the place
 * where a broken rule is reported. The same seed makes the same world, step by step. It knows none of the parts: those who
 * live in it take it as a dependency, and what they do is witnessed by the oracle.
 */
import { Random } from '../../support/random.ts';
import { EPOCH_MS, NEXT_MONTH_MS } from './epoch.ts';
import { SimOutage, Violation } from './errors.ts';
import { Marks } from './marks.ts';
import type { Mutation } from './mutations.ts';
import { AddedTexts } from './added-texts.ts';
import { SimDefinitions } from './pipelines.ts';
import { drawProfile, type Profile } from './profile.ts';
import type { SimNode } from './sim-node.ts';
import { Timeline } from './timeline.ts';
import type { Witness } from './witness.ts';

/** No message is under way for longer: connections that are stuck are closed before. */
const SLOW_MS_MAX = 15_000;

/** What makes another source of chance of a seed. */
const HOURS = 0x5e7_1e55;
const PAUSES = 0x9a05_e5;
const KEEPS = 0x6ee_9500;
const FLEETS = 0xf1_ee75;

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
  readonly added = new AddedTexts();
  readonly lines: string[] = [];
  journalUsed: number;
  /** All faults have ended. */
  healed = false;
  #ids = 0;
  #failure: Error | undefined;
  #promisesMoved = false;
  #witness: Witness | undefined;
  readonly #traced: boolean;

  constructor(seed: number, options: WorldOptions = {}) {
    this.seed = seed;
    this.mutation = options.mutation;
    this.#traced = options.traced === true;
    this.random = new Random(seed);
    this.profile = {
      ...drawProfile(this.random, {
        memory: new Random(~seed),
        hours: new Random(seed ^ HOURS),
        pauses: new Random(seed ^ PAUSES),
        keeps: new Random(seed ^ KEEPS),
        fleets: new Random(seed ^ FLEETS),
      }),
      ...options.profile,
    };
    this.journalUsed = this.profile.journalUsed;
  }

  get witness(): Witness {
    if (this.#witness === undefined)
      throw new Error('a world is lived before its witness was named: call witnessedBy first');
    return this.#witness;
  }

  witnessedBy(witness: Witness): void {
    this.#witness = witness;
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

  /** A message that takes long to put together is given as a function: nearly every check holds. */
  check(holds: boolean, rule: string, message: string | (() => string)): void {
    if (!holds) this.fail(new Violation(rule, typeof message === 'string' ? message : message()));
  }

  /** Kept, for what throws inside the code under test may be caught there. */
  fail(error: Error): void {
    this.#failure ??= error;
  }

  failWith(error: unknown): void {
    this.fail(error instanceof Error ? error : new Error(String(error)));
  }

  trace(line: () => string): void {
    if (!this.#traced) return;
    this.lines.push(`${(this.now / 1000).toFixed(3).padStart(9)} ${line()}`);
  }

  latency(): number {
    const { random, profile, healed } = this;
    if (!healed && random.chance(profile.slow)) {
      this.mark('slow message');
      return Math.min(random.exponential(profile.slowMs), SLOW_MS_MAX);
    }
    return random.exponential(profile.latencyMs);
  }

  /** Whether a message that may be lost is. */
  drops(probability: number): boolean {
    return !this.healed && this.random.chance(probability);
  }

  /** What was found first, if anything. */
  get failure(): Error | undefined {
    return this.#failure;
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

  pause(node: SimNode, milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.promise((resolve) => {
      if (signal?.aborted === true) resolve();
      else {
        signal?.addEventListener('abort', () => resolve(), { once: true });
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
        if (node.alive && node.life === life) this.failWith(error);
      },
    );
  }

  /** A part under test has had a turn: its promises may have gone on. */
  moved(): void {
    this.#promisesMoved = true;
  }

  get promisesMoved(): boolean {
    return this.#promisesMoved;
  }

  /** Lets everything that promises have set going run to its next wait for the world. */
  settlePromises(): Promise<void> {
    this.#promisesMoved = false;
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

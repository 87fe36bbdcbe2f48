/**
 * What comes in by the other doors while runs go on: pushes of a git host, publications, logins. Each keeps an account of what it
 * was promised; whether that is true is found out when everything is healed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../../support/random.ts';
import { DeliveryLoad, type DeliveryAccount } from './deliveries.ts';
import { LoginLoad, type LoginAccount } from './logins.ts';
import { PublishLoad, type PublishAccount } from './publishes.ts';

export interface DoorRates {
  readonly pushesPerSec: number;
  readonly publishesPerSec: number;
  readonly loginsPerSec: number;
}

export interface DoorAccount {
  readonly deliveries: DeliveryAccount;
  readonly publishes: PublishAccount;
  readonly logins: LoginAccount;
}

export interface DoorLoadOptions {
  readonly url: string;
  readonly apiKey: string;
  readonly rates: DoorRates;
  readonly seed: number;
}

/** Of each kind: more would only wait at a door that is shut. */
const UNDER_WAY_MAX = 60;

export class DoorLoad {
  readonly #options: DoorLoadOptions;
  readonly #deliveries: DeliveryLoad;
  readonly #publishes: PublishLoad;
  readonly #logins: LoginLoad;
  readonly #givenUp = new AbortController();
  readonly #stopped = new AbortController();
  #spawning: Promise<unknown> = Promise.resolve();

  constructor(options: DoorLoadOptions) {
    this.#options = options;
    this.#deliveries = new DeliveryLoad(options.url, new Random(options.seed ^ 1));
    this.#publishes = new PublishLoad(options.url, options.apiKey, new Random(options.seed ^ 2));
    this.#logins = new LoginLoad(options.url, new Random(options.seed ^ 3), this.#stopped.signal);
  }

  start(): void {
    const { rates, seed } = this.#options;
    const random = new Random(seed ^ 4);
    const signal = this.#givenUp.signal;
    this.#spawning = Promise.all([
      this.#spawn(rates.pushesPerSec, random, () => this.#deliveries.push(signal)),
      this.#spawn(rates.publishesPerSec, random, () => this.#publishes.publish(signal)),
      this.#spawn(rates.loginsPerSec, random, () => this.#logins.live(signal)),
    ]);
  }

  /** Nothing new; waits for what is under way, at most so long, and looks at what became of all of it. */
  async finish(limitMs: number): Promise<DoorAccount> {
    this.#stopped.abort();
    const late = setTimeout(() => this.#givenUp.abort(), limitMs);
    await this.#spawning;
    clearTimeout(late);
    return {
      deliveries: this.#deliveries.account(),
      publishes: await this.#publishes.account(),
      logins: await this.#logins.account(),
    };
  }

  async #spawn(perSec: number, random: Random, one: () => Promise<void>): Promise<void> {
    if (perSec === 0) return;
    const underWay = new Set<Promise<void>>();
    while (!this.#stopped.signal.aborted) {
      await pause(Math.min(4_000, random.exponential(1_000 / perSec)));
      if (this.#stopped.signal.aborted || underWay.size >= UNDER_WAY_MAX) continue;
      const task = one().finally(() => underWay.delete(task));
      underWay.add(task);
    }
    await Promise.all(underWay);
  }
}

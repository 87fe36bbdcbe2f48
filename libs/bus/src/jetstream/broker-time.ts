/**
 * What time it is at the broker, whose clock all services of an installation share: that of a machine may be off by hours. Asked once a minute,
 * and counted on by the boot clock in between, which nobody sets.
 */
import { bootMs } from '@penstock/async';
import type { Bus } from '../wire/bus.ts';
import { type ClockDifference, type ClockedService, clockDifference } from './clock-difference.ts';

const KEPT_MS = 60_000;

export class BrokerTime {
  readonly #bus: Bus;
  readonly #service: ClockedService;
  #asked: { readonly at: number; readonly difference: Promise<ClockDifference | null> } | undefined;

  constructor(bus: Bus, service: ClockedService) {
    this.#bus = bus;
    this.#service = service;
  }

  /** The latest time that it may be there, milliseconds since 1970; NaN: the broker does not say. Throws what a request throws. */
  async latest(): Promise<number> {
    const difference = await this.#difference();
    return difference === null ? Number.NaN : bootMs() - difference.aheadMs + difference.withinMs;
  }

  #difference(): Promise<ClockDifference | null> {
    if (this.#asked !== undefined && bootMs() - this.#asked.at < KEPT_MS) return this.#asked.difference;
    const asked = { at: bootMs(), difference: clockDifference(this.#bus, this.#service, bootMs) };
    this.#asked = asked;
    asked.difference.catch(() => {
      if (this.#asked === asked) this.#asked = undefined;
    });
    return asked.difference;
  }
}

/**
 * Whether what is decided can be committed: any scheduler that can says so. For the time of a membership its word holds on, since
 * requests wait as long for the next owner of a partition. Probes need no authentication, so it is asked at most once a second,
 * however often somebody wants to know.
 */
import { bootMs } from '@penstock/async';
import { type Bus, type Committing, MEMBERSHIP_MS, subjects } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';

/** Below the time that a probe of an ingress takes. */
const ANSWER_MS_MAX = 1_500;
const ASKED_EVERY_MS = 1_000;

export class CommittingSchedulers {
  readonly #bus: Bus;
  readonly #now: () => number;
  #askedAtMs = -Infinity;
  #heardAtMs = -Infinity;
  #answer: Promise<void> = Promise.resolve();

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(bus: Bus, now: () => number = bootMs) {
    this.#bus = bus;
    this.#now = now;
  }

  /** Rejects with `Unavailable` where there is none. */
  check(): Promise<void> {
    if (this.#now() - this.#askedAtMs >= ASKED_EVERY_MS) {
      this.#askedAtMs = this.#now();
      this.#answer = this.#ask();
      this.#answer.catch(() => {});
    }
    return this.#answer;
  }

  async #ask(): Promise<void> {
    try {
      await this.#bus.request<null, Committing>(subjects.committing, null, { timeoutMs: ANSWER_MS_MAX });
      this.#heardAtMs = this.#now();
    } catch (error) {
      if (this.#now() - this.#heardAtMs >= MEMBERSHIP_MS)
        throw new Unavailable('no scheduler can commit', { cause: error });
    }
  }
}

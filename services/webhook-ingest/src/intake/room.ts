/**
 * Whether there is room for another delivery in the stream (INTAKE-3), by what waits there as far as this ingest knows.
 *
 *  STREAMROOM-1 Of one repository 100,000 wait, or as many as take an eighth of the stream's bytes.
 *  STREAMROOM-2 Of all connected repositories of a user, a quarter of what is free: somebody with a thousand of them, each of which waits for what never
 *     comes, leaves room for another, and so do any number of such. And some, whatever waits of others.
 */
import type { DeliveryLog, DeliveryPlace } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { sharingOf } from '../model/lane-name.ts';
import type { WhatWaits } from '../processing/backlog.ts';

interface Amount {
  readonly deliveries: number;
  readonly bytes: number;
}

export interface RoomOptions {
  readonly stream: Pick<DeliveryLog, 'most'>;
  readonly waiting: WhatWaits;
  /** Of one repository, in place of STREAMROOM-1. */
  readonly waitingMax?: Amount | undefined;
}

const OF_REPOSITORY = { deliveries: 100_000, share: 1 / 8 };
const OF_USER = { share: 1 / 4, own: { deliveries: 100, bytes: 1024 * 1024 } };
/** A backlog that is full has thousands of clones before it. */
export const BACKLOG_RETRY_SECS = 30;

const UNKNOWN: Amount = { deliveries: Infinity, bytes: Infinity };

export class Room {
  readonly #options: RoomOptions;
  /** What the stream may hold. */
  #most: Amount | undefined;
  #asking: Promise<Amount> | undefined;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** Throws `Unavailable` where there is none; rejects with it where the stream has to be asked what it may hold. */
  check(place: DeliveryPlace): Promise<void> | undefined {
    return this.#within((most) => {
      this.#assertRepository(place.lane, most);
      const { owner } = sharingOf(place.host);
      if (owner !== '' && !this.#hasShare(owner, most)) throw refusal("this user's repositories");
    });
  }

  /** The same by STREAMROOM-1 alone: that a connection ends is told however much of its user's waits. */
  checkRepository(lane: string): Promise<void> | undefined {
    return this.#within((most) => this.#assertRepository(lane, most));
  }

  #within(assert: (most: Amount) => void): Promise<void> | undefined {
    if (this.#most === undefined) return this.#ask().then(assert);
    assert(this.#most);
    return undefined;
  }

  #assertRepository(lane: string, { bytes }: Amount): void {
    const { waiting, waitingMax } = this.#options;
    const { deliveries, share } = OF_REPOSITORY;
    if (!isBelow(waiting.waitingIn(lane), waitingMax ?? { deliveries, bytes: bytes * share }))
      throw refusal('this repository');
  }

  /** STREAMROOM-2 */
  #hasShare(owner: string, most: Amount): boolean {
    const { waiting } = this.#options;
    const all = waiting.waiting;
    return isBelow(waiting.waitingOf(owner), {
      deliveries: Math.max(OF_USER.own.deliveries, (most.deliveries - all.deliveries) * OF_USER.share),
      bytes: Math.max(OF_USER.own.bytes, (most.bytes - all.bytes) * OF_USER.share),
    });
  }

  /** A broker that does not answer is told apart when the delivery is to be kept. */
  #ask(): Promise<Amount> {
    this.#asking ??= this.#options.stream
      .most()
      .then(
        (most) => (this.#most = most),
        () => UNKNOWN,
      )
      .finally(() => (this.#asking = undefined));
    return this.#asking;
  }
}

function isBelow(its: Amount, most: Amount): boolean {
  return its.deliveries < most.deliveries && its.bytes < most.bytes;
}

function refusal(whose: string): Unavailable {
  return new Unavailable(`Too many deliveries of ${whose} wait to be processed; send it again later.`, {
    retryAfterSecs: BACKLOG_RETRY_SECS,
  });
}

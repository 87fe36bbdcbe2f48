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

export class Room {
  readonly #options: RoomOptions;
  #most: Promise<Amount> | undefined;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** Throws `Unavailable` where there is none. */
  async check({ lane, host }: DeliveryPlace): Promise<void> {
    await this.checkRepository(lane);
    const { owner } = sharingOf(host);
    if (owner !== '' && !(await this.#hasShare(owner))) throw refusal("this user's repositories");
  }

  /** By STREAMROOM-1 alone: that a connection ends is told however much of its user's waits. Throws `Unavailable`. */
  async checkRepository(lane: string): Promise<void> {
    const { waiting, waitingMax } = this.#options;
    const its = waiting.waitingIn(lane);
    if (its.deliveries === 0 && waitingMax === undefined) return;
    const share = { deliveries: OF_REPOSITORY.deliveries, bytes: (await this.#mostOf()).bytes * OF_REPOSITORY.share };
    if (!isBelow(its, waitingMax ?? share)) throw refusal('this repository');
  }

  /** STREAMROOM-2 */
  async #hasShare(owner: string): Promise<boolean> {
    const { waiting } = this.#options;
    const most = await this.#mostOf();
    const all = waiting.waiting;
    const share = {
      deliveries: Math.max(OF_USER.own.deliveries, (most.deliveries - all.deliveries) * OF_USER.share),
      bytes: Math.max(OF_USER.own.bytes, (most.bytes - all.bytes) * OF_USER.share),
    };
    return isBelow(waiting.waitingOf(owner), share);
  }

  /** A broker that does not answer is told apart when the delivery is to be kept. */
  #mostOf(): Promise<Amount> {
    this.#most ??= this.#options.stream.most().catch(() => {
      this.#most = undefined;
      return { deliveries: Infinity, bytes: Infinity };
    });
    return this.#most;
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

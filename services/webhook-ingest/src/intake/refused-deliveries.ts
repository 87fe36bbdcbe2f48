/**
 * Deliveries that nothing comes of, kept so that their senders can see why. Best effort: an answer does not wait for it,
 * and where too many come at once, or of one tenant in a day, the rest is not kept.
 */
import { randomUUID } from 'node:crypto';
import type { TraceStep } from '../model/decision.ts';
import type { DeliveriesRepository } from '../model/deliveries-repository.ts';
import type { Delivery } from '../model/delivery.ts';
import type { DeliveryError } from '../model/errors.ts';
import type { Log } from '@penstock/telemetry/log';

const PENDING_MAX = 50;
const CHARACTERS_MAX = 300;
const TOLD_CHARACTERS_MAX = 1_000;

export class RefusedDeliveries {
  readonly #deliveries: DeliveriesRepository;
  readonly #log: Log;
  readonly #now: () => number;
  #pending = 0;

  constructor(deliveries: DeliveriesRepository, log: Log, now: () => number) {
    this.#deliveries = deliveries;
    this.#log = log;
    this.#now = now;
  }

  add(
    push: Pick<
      Delivery,
      'provider' | 'event' | 'repository' | 'ref' | 'commit' | 'tenant' | 'key' | 'userId' | 'verified'
    >,
    status: 'Ignored' | 'Failed',
    step: TraceStep['step'],
    detail: string,
    error?: DeliveryError,
  ): void {
    if (this.#pending >= PENDING_MAX) return;
    const now = this.#now();
    const id = randomUUID();
    const shortened = {
      repository: short(push.repository),
      ref: short(push.ref),
      commit: short(push.commit),
      event: short(push.event),
      // It has the repository in it.
      key: short(push.key),
    };
    const delivery: Delivery = {
      ...push,
      ...shortened,
      id,
      deliveryId: id,
      runId: '',
      cloneUrl: '',
      receivedAt: now,
      answeredBy: now,
      message: null,
      paths: null,
      bodySha256: '',
    };
    this.#pending += 1;
    this.#deliveries
      .insertRefused(delivery, {
        kind: 'nothing',
        status,
        source: 'none',
        trace: [{ step, passed: false, detail: short(detail, TOLD_CHARACTERS_MAX) }],
        ...(error === undefined ? {} : { error: { ...error, message: short(error.message, TOLD_CHARACTERS_MAX) } }),
      })
      .catch((cause: unknown) => this.#log.warn({ err: cause }, 'a refused delivery could not be kept'))
      .finally(() => (this.#pending -= 1));
  }
}

/** Nothing has checked how long these are, or what they are made of. */
function short(text: string, charactersMax = CHARACTERS_MAX): string {
  return text.slice(0, charactersMax).toWellFormed();
}

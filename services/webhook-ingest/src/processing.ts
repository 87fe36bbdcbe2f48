/**
 * From DELIVERIES to runs. It owns the deliveries that this ingest has taken from the consumer.
 *
 *  G1 The first decision that reaches the store stands, whoever made it; a delivery handed out again goes by it. So a
 *     delivery becomes one run, of one kind, however often ingests, schedulers or the broker are killed on the way.
 *  G2 A delivery is acknowledged when its run is durable, its decision is in the store and its status is in the outbox.
 *  G3 Nothing is given up: what cannot be done now is done again, without holding up other repositories.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { openDeliveryLog, startDeliveryConsumer, subjects, type Bus, type DeliveryConsumer, type DeliveryLog, type HeldDelivery } from '@penstock/bus';
import { carryOut, type CarryOutSources } from './carry-out.ts';
import { decide, type DecisionSources } from './decide.ts';
import type { Decision } from './decision.ts';
import type { DecidedDelivery, DeliveriesRepository } from './deliveries-repository.ts';
import { decodeDelivery, type Delivery } from './delivery.ts';
import { Lanes } from './lanes.ts';
import { decidedMessage, type DecidedMessage } from './outcome.ts';
import type { IngestLog } from './ports.ts';

export interface ProcessingOptions extends DecisionSources, CarryOutSources {
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  /** Puts what the host is to be told into the outbox. */
  beginStatus(delivery: Delivery, decision: Decision): Promise<void>;
  readonly log: IngestLog;
  readonly concurrency?: number | undefined;
}

/** Clones wait for the network and for git more than for us. */
const CONCURRENCY = 8;
/** A processed delivery answers repetitions from the stream for so long (P24), and from the store for the rest. */
const PROCESSED_MS_KEPT = 60 * 60 * 1000;
const DECISIONS_MS_KEPT = 7 * 24 * 60 * 60 * 1000;
const SWEEP_MS = 60_000;
/** A clone may take a minute; what is not finished by then is done again by the next one. */
const STOP_MS_MAX = 5_000;
/** The first failures are a restart on the other side, mostly. */
const ATTEMPTS_UNTOLD = 2;

export class Processing {
  readonly #options: ProcessingOptions;
  readonly #stream: DeliveryLog;
  readonly #lanes: Lanes<HeldDelivery>;
  #consumer: DeliveryConsumer | undefined;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: ProcessingOptions) {
    this.#options = options;
    this.#stream = openDeliveryLog(options.bus);
    this.#lanes = new Lanes<HeldDelivery>({
      concurrency: options.concurrency ?? CONCURRENCY,
      work: (held) => this.#process(held),
      failed: (held, error, attempt) => {
        if (attempt > ATTEMPTS_UNTOLD) options.log.warn({ err: error, sequence: held.sequence, attempt }, 'a delivery could not be processed; tried again');
      },
    });
  }

  async start(): Promise<void> {
    await this.#stream.ensureConsumer();
    this.#consumer = startDeliveryConsumer(this.#options.bus, { onDelivery: (held) => this.#lanes.add(held.lane, held) });
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS);
  }

  /** Of one repository, taken from the stream by this ingest and not processed. */
  waitingIn(lane: string): number {
    return this.#lanes.waitingIn(lane);
  }

  /** What is under way is finished, if it is soon; the rest goes to others. */
  async stop(): Promise<void> {
    clearInterval(this.#sweeper);
    const timer = new AbortController();
    await Promise.race([this.#lanes.stop(), pause(STOP_MS_MAX, undefined, { signal: timer.signal }).catch(() => {})]);
    timer.abort();
    await this.#consumer?.stop();
  }

  async #process(held: HeldDelivery): Promise<void> {
    const bytes = await this.#stream.read(held.sequence);
    if (bytes !== null) await this.#settle(decodeDelivery(bytes));
    held.acknowledge();
  }

  async #settle(delivery: Delivery): Promise<void> {
    const { bus, deliveries } = this.#options;
    const standing = await this.#decided(delivery);
    if (standing.delivery.runId !== delivery.runId) {
      await this.#settleRepetition(delivery, standing);
      return;
    }
    const decision = await carryOut(delivery, standing.decision, this.#options);
    if (decision !== standing.decision) await deliveries.revise(standing, decision);
    await this.#options.beginStatus(delivery, decision);
    bus.publish<DecidedMessage>(subjects.decided, decidedMessage(delivery, decision));
  }

  /** G1. */
  async #decided(delivery: Delivery): Promise<DecidedDelivery> {
    const { deliveries } = this.#options;
    const known = await deliveries.get(delivery.id);
    if (known !== null) return known;
    const decision = await decide(delivery, this.#options);
    if ((await deliveries.insert(delivery, decision)) === 'inserted') return { delivery, decision, revision: 0 };
    const first = await deliveries.get(delivery.id);
    if (first === null) throw new Error(`the decision about delivery ${delivery.id} was there and is gone`);
    return first;
  }

  /**
   * It came again more than an hour after the first, while the store could not be asked about that: its sender was given
   * an id of its own, so a run of that id comes to be, and says nothing but this.
   */
  async #settleRepetition(delivery: Delivery, { delivery: first }: DecidedDelivery): Promise<void> {
    const detail = `the delivery was seen before: run ${first.runId}`;
    const decision: Decision = { kind: 'ended', status: 'SKIPPED', pipelineName: delivery.repository, source: 'none', trace: [{ step: 'event', passed: false, detail }] };
    await carryOut(delivery, decision, this.#options);
    this.#options.bus.publish<DecidedMessage>(subjects.decided, decidedMessage(delivery, decision));
  }

  async #sweep(): Promise<void> {
    const now = this.#options.now();
    try {
      await this.#stream.removeProcessed(now - PROCESSED_MS_KEPT);
      await this.#options.deliveries.removeOlderThan(now - DECISIONS_MS_KEPT);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'old deliveries could not be removed; tried again in a minute');
    }
  }
}

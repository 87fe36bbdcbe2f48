/**
 * From DELIVERIES to runs. What waits there is in `backlog.ts`, whose turn it is in `Lanes`.
 *
 *  PROCESSING-1 The first decision that reaches the store stands, whoever made it; a delivery handed out again goes by it. So a
 *     delivery becomes one run, of one kind, however often ingests, schedulers or the broker are killed on the way.
 *  PROCESSING-2 A delivery counts as processed when its run is durable, its decision is in the store and its status is in the outbox.
 *  PROCESSING-3 Nothing is given up: what cannot be done now is done again, without holding up other repositories. What fails in a
 *     way that no waiting mends becomes, after a few tries, a run that failed: quarantined.
 *  PROCESSING-4 A run's id that may have been answered becomes a run, also where nothing was to come of the delivery.
 *  PROCESSING-5 While pushes come fast, deliveries are processed one at a time (but for those that take seconds, LANE-3) with rests between:
 *     what is refused never comes again, and what waits is safe.
 *  PROCESSING-6 While others ask for runs on the same machine, the processing takes half of the time at most, of however many repositories.
 *  PROCESSING-7 Then and while pushes come fast few heads are asked for a second: each costs the broker and this process a fifth of what
 *     taking in a push costs. What is taken in here while heads are behind, or so many are held that there may be no room for its own,
 *     is known at once without them, so that a repository waits for its turn and not for the heads of others.
 */
import { bootMs, Lanes, pauseOrAbort, within } from '@penstock/async';
import {
  BrokerTime,
  NotPermitted,
  openDeliveryLog,
  startDeliveryConsumer,
  subjects,
  type Bus,
  type DeliveryConsumer,
  type DeliveryLog,
  type DeliveryPlace,
} from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { StoreError } from '@penstock/store';
import { mayBeAnswered } from './answered.ts';
import { carryOut, type CarryOutSources } from './carry-out.ts';
import { commitsBehind, decide, fetchAhead, type DecisionSources } from './decide.ts';
import { DecidingAhead } from './deciding-ahead.ts';
import { promised, type Decision } from '../model/decision.ts';
import type { DecidedDelivery, DeliveriesRepository } from '../model/deliveries-repository.ts';
import { decodeDelivery, type Delivery } from '../model/delivery.ts';
import { sharingOf } from '../model/lane-name.ts';
import { HeadElsewhere, type DeliveryError } from '../model/errors.ts';
import { Backlog, type Piece, type WhatWaits } from './backlog.ts';
import { FailingLanes } from './failing-lanes.ts';
import { HeadsAwaited } from './heads-awaited.ts';
import { OldDeliveries } from './old-deliveries.ts';
import { Pace } from './pace.ts';
import { decidedMessage, type DecidedMessage } from '../model/outcome.ts';
import { endConnection, keepSchedule, type PlacedDelivery, type ScheduleSources } from './schedule.ts';
import type { Owners } from '@penstock/run-client';
import { silentLog, type Log } from '@penstock/telemetry/log';
import { keptRequest, withRequest } from '@penstock/telemetry/request';

export interface ProcessingOptions extends DecisionSources, CarryOutSources, ScheduleSources {
  readonly owners: Owners;
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  /** Puts the status that the host is to show into the outbox. */
  beginStatus(delivery: Delivery, decision: Decision): Promise<void>;
  readonly log: Log;
  now(): number;
  readonly concurrency?: number | undefined;
  /** Whether pushes come so fast that taking them in wants all there is. */
  isIntakeBusy(): boolean;
  /** Whether somebody asks for runs otherwise, on this machine. */
  areRunsAsked(): boolean;
}

/** Clones wait for the network and for git more than for us. */
const CONCURRENCY = 16;
/** A processed delivery answers repetitions from the stream for so long (P24), and from the store for the rest. */
const PROCESSED_MS_KEPT = 60 * 60 * 1000;
/** Ingests sweep once a minute. */
const LEFT_MS_MAX = 10 * 60 * 1000;
/** In a full stream, where nothing else is to remove: some 20,000 are read. */
const LEFT_AGAIN_MS = 5_000;
/** Of a full stream: a fraction of a second's work. */
const ROOM_MADE = 2_000;
const DECISIONS_MS_KEPT = 7 * 24 * 60 * 60 * 1000;
const SWEEP_MS = 60_000;
/** A clone may take a minute; what is not finished by then is done again by the next one. */
const STOP_MS_MAX = 5_000;
/** With the pauses between them they take some ten seconds, in which a full disk may have room again. */
const STRANGE_FAILURES_MAX = 6;
/** More than are processed a second by far. */
const HEADS_PER_SECOND_FOR_OTHERS = 1_000;
/** Some of the time of this thread, so that other requests do not stand behind those of a long backlog. */
const HEADS_PER_SECOND_BEHIND = 10_000;
/** At the slow pace they are there in a second. */
const HEADS_BEHIND = 1_000;

export class Processing {
  readonly #options: ProcessingOptions;
  readonly #stream: DeliveryLog;
  readonly #backlog: Backlog;
  readonly #lanes: Lanes;
  readonly #old: OldDeliveries;
  /** How often deciding about a delivery has failed in a way of which nobody knows that it passes. */
  readonly #strange = new Map<string, number>();
  readonly #headsAwaited = new HeadsAwaited();
  readonly #failing: FailingLanes;
  readonly #stopped = new AbortController();
  readonly #pace = new Pace();
  readonly #ahead: DecidingAhead;
  readonly #brokerTime: BrokerTime;
  #consumer: DeliveryConsumer | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #leftFrom = -Infinity;

  constructor(options: ProcessingOptions) {
    this.#options = options;
    this.#brokerTime = new BrokerTime(options.bus, 'webhook-ingest');
    this.#stream = openDeliveryLog(options.bus, {
      processedUpTo: (from, end) => this.#old.processedUpTo(from, end, { signal: this.#stopped.signal }),
    });
    const isDecided = async ({ id, runId }: Delivery): Promise<boolean> =>
      (await options.deliveries.get(id))?.delivery.runId === runId;
    this.#backlog = new Backlog({ stream: this.#stream, isDecided });
    this.#old = new OldDeliveries({
      stream: this.#stream,
      backlog: this.#backlog,
      isDecided: async ({ id, bytes }) =>
        (await options.deliveries.get(id)) !== null || decodeDelivery(bytes).ended !== undefined,
      isItselfDecided: ({ bytes }) => isDecided(decodeDelivery(bytes)),
      onLane: (lane, host) => this.#lanes.add(lane, sharingOf(host)),
    });
    this.#failing = new FailingLanes(options.log);
    this.#ahead = new DecidingAhead({
      decide: (delivery, behind) =>
        withRequest(keptRequest(delivery), () =>
          // What is wrong with it is told in its turn.
          decide(delivery, { ...options, log: silentLog, along: commitsBehind(delivery, behind) }),
        ),
      fetch: (delivery, behind) => fetchAhead(delivery, { ...options, along: commitsBehind(delivery, behind) }),
      isFree: () => !(this.#stopped.signal.aborted || options.isIntakeBusy() || options.areRunsAsked()),
      now: bootMs,
    });
    const concurrency = options.concurrency ?? CONCURRENCY;
    this.#lanes = new Lanes({
      concurrency,
      concurrencyNow: () => (options.isIntakeBusy() ? 1 : concurrency),
      work: (lane) => this.#process(lane),
      failed: (lane, error, attempt, forMs) => {
        if (!(error instanceof HeadElsewhere)) this.#failing.failed(lane, error, attempt, forMs);
      },
    });
  }

  /** The consumer exists. */
  start(): void {
    this.#consumer = startDeliveryConsumer(this.#options.bus, {
      onDelivery: (head) => {
        const lane = this.#backlog.add(head);
        if (lane !== null && !this.#lanes.goOn(lane)) this.#lanes.add(lane, sharingOf(head.host));
      },
      onAnew: () => this.#backlog.startAnew(),
      perSecond: () => this.#headsPerSecond(),
    });
    this.#sweeper = setInterval(() => this.#sweepOnce(), SWEEP_MS);
  }

  /** PROCESSING-7: what has just been stored here. */
  stored(place: DeliveryPlace, sequence: number, bytes: number): void {
    if ((this.#consumer?.behind ?? 0) < HEADS_BEHIND) return;
    const { lane, host } = place;
    if (this.#backlog.note(place, sequence, bytes) && !this.#lanes.goOn(lane)) this.#lanes.add(lane, sharingOf(host));
  }

  /** Removes some of what is processed and stored before this time (milliseconds since 1970); whether there was any. */
  async makeRoom(before: number): Promise<boolean> {
    try {
      const removed = await this.#old.walk({ before, enough: ROOM_MADE });
      if (removed === 0 && bootMs() >= this.#leftFrom) void this.#removeLeft(before);
      return removed > 0;
    } catch (error) {
      this.#cannotRemove(error);
      return false;
    }
  }

  /** Of what an ingest has left that is gone; nobody waits for it. */
  async #removeLeft(before: number): Promise<void> {
    this.#leftFrom = Infinity;
    try {
      // Else another ingest may be there, and have the head of any (OLD-1).
      const isAlone = (await this.#stream.heldByAll()) <= (this.#consumer?.held ?? 0);
      if (isAlone) await this.#old.walk({ before, lookBefore: before, enough: ROOM_MADE });
    } catch (error) {
      this.#cannotRemove(error);
    } finally {
      this.#leftFrom = bootMs() + LEFT_AGAIN_MS;
    }
  }

  #cannotRemove(error: unknown): void {
    const why =
      error instanceof NotPermitted
        ? ': its accounts are of an earlier release, make them anew (deploy/nats/generate.ts)'
        : '';
    this.#options.log.warn({ err: error }, `what is processed could not be removed from the broker's deliveries${why}`);
  }

  /** See `DeliveryLogOptions`; a part of it, for somebody waits. */
  async processedUpTo(from: number, end: number): Promise<number> {
    return await this.#old.processedUpTo(from, end, { mostRead: ROOM_MADE });
  }

  /** What waits, as far as this ingest knows. */
  get waiting(): WhatWaits {
    return this.#backlog;
  }

  /** What is under way is finished, if it is soon; the rest goes to others. */
  async stop(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#stopped.abort();
    await within(STOP_MS_MAX, Promise.all([this.#lanes.stop(), this.#sweeping]), () => {});
    await this.#consumer?.stop();
  }

  async #process(lane: string): Promise<boolean> {
    const piece = await this.#backlog.next(lane);
    if (piece === null) {
      this.#failing.done(lane);
      this.#ahead.forget(lane);
      return false;
    }
    await this.#giveWay();
    const from = performance.now();
    const { sequence, storedAt, delivery, behind } = piece;
    this.#failing.tried(lane, delivery.requestId);
    await withRequest(keptRequest(delivery), () => this.#settle(lane, { ...delivery, sequence, storedAt }, behind));
    this.#failing.done(lane);
    this.#pace.took(performance.now() - from);
    this.#backlog.done(lane, piece);
    return true;
  }

  /** PROCESSING-7 */
  #headsPerSecond(): number {
    const { isIntakeBusy, areRunsAsked } = this.#options;
    if (isIntakeBusy() || areRunsAsked()) return HEADS_PER_SECOND_FOR_OTHERS;
    return (this.#consumer?.behind ?? 0) < HEADS_BEHIND ? Infinity : HEADS_PER_SECOND_BEHIND;
  }

  /** PROCESSING-5, PROCESSING-6 */
  async #giveWay(): Promise<void> {
    const { isIntakeBusy, areRunsAsked } = this.#options;
    const { signal } = this.#stopped;
    await this.#pace.giveWay(() => ({ isIntakeBusy: isIntakeBusy(), areRunsAsked: areRunsAsked() }), {
      pause: (ms) => pauseOrAbort(ms, signal),
      isOver: () => signal.aborted,
    });
  }

  async #settle(lane: string, delivery: PlacedDelivery, behind: Piece['behind']): Promise<void> {
    const { bus, deliveries } = this.#options;
    if (delivery.ended !== undefined) return await endConnection(delivery, this.#options);
    const standing = await this.#decided(lane, delivery, behind);
    if (standing.delivery.runId !== delivery.runId) {
      await this.#settleRepetition(delivery, standing);
      return;
    }
    const carriedOut = await carryOut(delivery, standing.decision, this.#options);
    const kept = await keepSchedule(delivery, carriedOut, this.#options);
    // PROCESSING-4: Asked when the decision is in the store, and after whatever may take long: a sender who is answered later than this
    // looks there first, or has been told by then.
    const decision =
      kept.kind === 'nothing' && mayBeAnswered(delivery, await this.#brokerTime.latest())
        ? await carryOut(delivery, promised(kept, delivery.repository), this.#options)
        : kept;
    await deliveries.carriedOut(standing, decision);
    await this.#options.beginStatus(delivery, decision);
    this.#options.log.debug(
      { deliveryId: delivery.deliveryId, repository: delivery.repository, runId: delivery.runId, kind: decision.kind },
      'a delivery is processed',
    );
    bus.publish<DecidedMessage>(subjects.decided, decidedMessage(delivery, decision));
  }

  /** Keeps PROCESSING-1. */
  async #decided(lane: string, delivery: Delivery, behind: Piece['behind']): Promise<DecidedDelivery> {
    const { deliveries } = this.#options;
    const known = await deliveries.get(delivery.id);
    if (known !== null) {
      this.#headsAwaited.forget(delivery.id);
      return known;
    }
    const decision = (await this.#ahead.take(lane, delivery)) ?? (await this.#decide(delivery, behind));
    if (decision.kind === 'run') this.#ahead.begin(lane, behind());
    const standing = await deliveries.insert(delivery, decision);
    if (standing !== null) return standing;
    const first = await deliveries.get(delivery.id);
    if (first === null) throw new Error(`the decision about delivery ${delivery.id} was there and is gone`);
    return first;
  }

  /** Keeps PROCESSING-3. */
  async #decide(delivery: Delivery, behind: Piece['behind']): Promise<Decision> {
    try {
      const decision = await decide(delivery, {
        ...this.#options,
        along: commitsBehind(delivery, behind()),
        mayMove: (head) => this.#headsAwaited.mayMove(delivery, head, behind()),
      });
      this.#strange.delete(delivery.id);
      this.#headsAwaited.forget(delivery.id);
      return decision;
    } catch (error) {
      if (
        error instanceof HeadElsewhere ||
        error instanceof Unavailable ||
        (error instanceof StoreError && error.retryable)
      )
        throw error;
      const failures = (this.#strange.get(delivery.id) ?? 0) + 1;
      this.#strange.set(delivery.id, failures);
      if (failures < STRANGE_FAILURES_MAX) throw error;
      this.#strange.delete(delivery.id);
      this.#options.log.error(
        { err: error, repository: delivery.repository, deliveryId: delivery.deliveryId },
        'a delivery cannot be decided about; its run is quarantined',
      );
      const fault: DeliveryError = {
        code: 'quarantined',
        message: 'The server failed on this push; the reason is in its log, which the operator can read.',
      };
      return {
        kind: 'ended',
        status: 'FAILED',
        reason: 'quarantined',
        pipelineName: delivery.repository,
        source: 'none',
        error: fault,
        trace: [{ step: 'fetched', passed: false, detail: fault.message }],
      };
    }
  }

  /**
   * It came again more than an hour after the first, while the store could not be asked about that: its sender was given
   * an id of its own, so a run of that id comes to be, and says nothing but this.
   */
  async #settleRepetition(
    delivery: Delivery & { readonly sequence: number },
    { delivery: first }: DecidedDelivery,
  ): Promise<void> {
    const detail = `the delivery was seen before: run ${first.runId}`;
    const decision: Decision = {
      kind: 'ended',
      status: 'SKIPPED',
      pipelineName: delivery.repository,
      source: 'none',
      trace: [{ step: 'event', passed: false, detail }],
    };
    await carryOut(delivery, decision, this.#options);
    this.#options.bus.publish<DecidedMessage>(subjects.decided, decidedMessage(delivery, decision));
  }

  #sweepOnce(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
  }

  async #sweep(): Promise<void> {
    const { signal } = this.#stopped;
    const now = this.#options.now();
    try {
      await this.#options.deliveries.removeOlderThan(now - DECISIONS_MS_KEPT);
      const before = now - PROCESSED_MS_KEPT;
      let isMoreThere = !signal.aborted && (await this.#stream.removeProcessed(before));
      const walk = { before, lookBefore: before - LEFT_MS_MAX, enough: ROOM_MADE, signal };
      // Bit by bit: a stream that is full waits for its turn.
      while (isMoreThere && !signal.aborted) isMoreThere = (await this.#old.walk(walk)) >= ROOM_MADE;
    } catch (error) {
      this.#cannotRemove(error);
    }
  }
}

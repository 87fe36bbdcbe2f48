/**
 * Requests to the owners of partitions. It owns the highest epoch seen of each partition.
 *
 *  OWNERS-1 A request reaches whoever owns the partition now: while nobody answers it is repeated, within its deadline (P3).
 *     A new owner's message (`opened`) is as good as silence: what its predecessor has, that one answers no more.
 *  OWNERS-2 What comes from a lower epoch than one seen before is dropped (P4).
 *  OWNERS-3 Every request may be sent twice: creating, reading and watching are idempotent; a refused cancel or decision says whether an
 *     earlier sending may have been decided (`repeated`).
 */
import {
  BrokerAway,
  RemoteError,
  RequestTimeout,
  NoResponders,
  subjects,
  type Bus,
  type BusSubscription,
  type ApproveReply,
  type ApproveRequest,
  type CancelReply,
  type CancelRequest,
  type CreateReply,
  type CreateRequest,
  type DecideReply,
  type DecideRequest,
  type DeleteReply,
  type DeleteRequest,
  type GetReply,
  type GetRequest,
  type OwnerErrorCode,
  type PauseReply,
  type PauseRequest,
  type SchedulesReply,
  type SchedulesRequest,
  type SetScheduleReply,
  type SetScheduleRequest,
  type OwnerRefusal,
  type PartitionOpened,
  type WaitsReply,
  type WaitsRequest,
  type WatchReply,
  type WatchRequest,
} from '@penstock/bus';
import { partitionOf, partitionOfKey, type Epoch, type RunId } from '@penstock/run';
import { currentRequest } from '@penstock/telemetry/request';
import { setTimeout as pause } from 'node:timers/promises';
import {
  BadUserInput,
  Conflict,
  Forbidden,
  NotFound,
  QuotaExceeded,
  type ServiceError,
  TaggedError,
  Unavailable,
} from '@penstock/errors';

/** "The owner of a run did not answer in 10 s": the contract's time for `UNAVAILABLE`. */
const OWNER_MS_MAX = 10_000;
/** One sending: an owner that is frozen, or may not answer any more, has a successor after the 6 s of its membership. */
const SENDING_MS_MAX = 3_000;
/** Before asking again after an answer that does not count. */
const AGAIN_MS = 100;

type Accepted<R> = Exclude<R, OwnerRefusal>;

/** The run keeps which request it came from. */
function withRequestOf(request: CreateRequest): CreateRequest {
  const served = currentRequest();
  if (served === undefined) return request;
  const { id: requestId, traceparent } = served;
  return {
    ...request,
    origin: { ...request.origin, requestId, ...(traceparent === undefined ? {} : { traceparent }) },
  };
}

export class Owners {
  readonly partitions: number;
  readonly #bus: Bus;
  /** Of one question. */
  readonly msMax: number;
  readonly #epochs = new Map<number, number>();
  readonly #askAgain = new Map<number, Set<() => void>>();
  readonly #subscription: BusSubscription;
  readonly #onReconnect = (): void => {
    for (const listeners of this.#askAgain.values()) for (const listener of [...listeners]) listener();
  };

  constructor(bus: Bus, partitions: number, msMax = OWNER_MS_MAX) {
    this.#bus = bus;
    this.msMax = msMax;
    this.partitions = partitions;
    this.#subscription = bus.subscribe<PartitionOpened>(subjects.opened('*'), ({ partition, epoch }) => {
      this.accepts(partition, epoch);
      for (const listener of [...(this.#askAgain.get(partition) ?? [])]) listener();
    });
    bus.events.on('reconnected', this.#onReconnect);
  }

  close(): void {
    this.#subscription.stop();
    this.#bus.events.off('reconnected', this.#onReconnect);
  }

  partitionOf(runId: RunId): number {
    return partitionOf(runId, this.partitions);
  }

  /** Whether something of this epoch counts; a higher one than before is remembered. */
  accepts(partition: number, epoch: Epoch): boolean {
    const known = this.#epochs.get(partition) ?? 0;
    if (epoch > known) this.#epochs.set(partition, epoch);
    return epoch >= known;
  }

  /** Calls back when what was heard of the partition may be incomplete: a new owner, or a connection that broke (P20). */
  onAskAgain(partition: number, listener: () => void): () => void {
    let listeners = this.#askAgain.get(partition);
    if (listeners === undefined) {
      listeners = new Set();
      this.#askAgain.set(partition, listeners);
    }
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  async create(request: CreateRequest): Promise<Accepted<CreateReply>> {
    const partition = this.partitionOf(request.runId);
    try {
      return await this.#ask<CreateRequest, CreateReply>(partition, 'create', withRequestOf(request));
    } catch (error) {
      const refused = error instanceof OwnerRefused ? error.cause : error;
      // The same id again is safe, so the client learns it.
      if (refused instanceof Unavailable)
        throw new Unavailable(refused.message, {
          cause: refused,
          retryAfterSecs: refused.retryAfterSecs,
          runId: request.runId,
        });
      throw refused;
    }
  }

  /** A refusal is thrown as `OwnerRefused`, since an earlier sending may have been decided (OWNERS-3). */
  async cancel(request: CancelRequest): Promise<Accepted<CancelReply>> {
    return await this.#ask<CancelRequest, CancelReply>(this.partitionOf(request.runId), 'cancel', request);
  }

  /** A refusal is thrown as `OwnerRefused`. */
  async approve(request: ApproveRequest): Promise<Accepted<ApproveReply>> {
    return await this.#ask<ApproveRequest, ApproveReply>(this.partitionOf(request.runId), 'approve', request);
  }

  /** A refusal is thrown as `OwnerRefused`, since an earlier sending may have been decided (OWNERS-3). */
  async decide(request: DecideRequest): Promise<Accepted<DecideReply>> {
    return await this.#ask<DecideRequest, DecideReply>(this.partitionOf(request.runId), 'decide', request);
  }

  /** A refusal is thrown as `OwnerRefused`, since an earlier sending may have been decided (OWNERS-3). */
  async delete(request: DeleteRequest): Promise<Accepted<DeleteReply>> {
    return await this.#ask<DeleteRequest, DeleteReply>(this.partitionOf(request.runId), 'delete', request);
  }

  /** A refusal is thrown as `OwnerRefused`. */
  async setSchedule(request: SetScheduleRequest): Promise<void> {
    const partition = partitionOfKey(request.key, this.partitions);
    await this.#ask<SetScheduleRequest, SetScheduleReply>(partition, 'schedule', request);
  }

  async schedules(partition: number, request: SchedulesRequest): Promise<Accepted<SchedulesReply>> {
    return await unwrapped(this.#ask<SchedulesRequest, SchedulesReply>(partition, 'schedules', request));
  }

  /** The id says which partition it is of. */
  async pauseSchedule(request: PauseRequest): Promise<Accepted<PauseReply>> {
    return await unwrapped(this.#ask<PauseRequest, PauseReply>(this.partitionOf(request.id), 'pause', request));
  }

  async get(partition: number, request: GetRequest): Promise<Accepted<GetReply>> {
    return await unwrapped(this.#ask<GetRequest, GetReply>(partition, 'get', request));
  }

  async watch(request: WatchRequest): Promise<Accepted<WatchReply>> {
    return await unwrapped(this.#ask<WatchRequest, WatchReply>(this.partitionOf(request.runId), 'watch', request));
  }

  async waits(partition: number, request: WaitsRequest): Promise<Accepted<WaitsReply>> {
    return await unwrapped(this.#ask<WaitsRequest, WaitsReply>(partition, 'waits', request));
  }

  async #ask<Req, Rep extends OwnerRefusal | { readonly ok: true; readonly epoch: Epoch }>(
    partition: number,
    verb:
      | 'create'
      | 'cancel'
      | 'approve'
      | 'decide'
      | 'delete'
      | 'get'
      | 'watch'
      | 'waits'
      | 'schedule'
      | 'schedules'
      | 'pause',
    body: Req,
  ): Promise<Exclude<Rep, OwnerRefusal>> {
    const deadline = performance.now() + this.msMax;
    let repeated = false;
    for (;;) {
      const leftMs = Math.ceil(deadline - performance.now());
      if (leftMs <= 0) throw new Unavailable('The scheduler that has this run does not answer; try again.');
      let reply: Rep;
      try {
        reply = await this.#unlessOpened(partition, (signal) =>
          this.#bus.requestRetrying<Req, Rep>(subjects.owner(partition, verb), body, {
            deadlineMs: leftMs,
            timeoutMs: Math.min(leftMs, SENDING_MS_MAX, this.msMax / 3),
            signal,
          }),
        );
      } catch (error) {
        if (error instanceof Opened || error instanceof RequestTimeout || (error instanceof BrokerAway && error.sent)) {
          repeated = true;
          continue;
        }
        if (
          error instanceof NoResponders ||
          error instanceof BrokerAway ||
          (error instanceof RemoteError && error.failure === 'busy')
        ) {
          throw new Unavailable('The scheduler that has this run cannot be reached; try again.', { cause: error });
        }
        throw error;
      }
      if (!this.accepts(partition, reply.epoch)) {
        // What an owner before this one decided may be committed all the same.
        repeated = true;
        await pause(Math.min(AGAIN_MS, Math.max(0, deadline - performance.now())));
        continue;
      }
      if (reply.ok) return reply as Exclude<Rep, OwnerRefusal>;
      throw new OwnerRefused(refusalError(reply), repeated);
    }
  }

  /** Throws `Opened` as soon as another owner than the present one says that it has opened the partition. */
  async #unlessOpened<T>(partition: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const epoch = this.#epochs.get(partition) ?? 0;
    const opened = new AbortController();
    const { promise: over, reject } = Promise.withResolvers<never>();
    const stopListening = this.onAskAgain(partition, () => {
      if ((this.#epochs.get(partition) ?? 0) <= epoch) return;
      opened.abort();
      reject(new Opened());
    });
    const asked = ask(opened.signal);
    try {
      // What is asked and left behind ends by its own time, heard by nobody.
      return await Promise.race([asked, over]);
    } finally {
      stopListening();
    }
  }
}

/** The partition has a new owner, to be asked in place of the one before. */
class Opened extends TaggedError {
  readonly tag = 'Opened';
}

/** An owner's refusal; `cause` is what the client is told, `repeated` says that an earlier sending may have succeeded. */
export class OwnerRefused extends TaggedError {
  readonly tag = 'OwnerRefused';
  override readonly cause: ServiceError;
  readonly repeated: boolean;
  constructor(cause: ServiceError, repeated: boolean) {
    super(cause.message, { cause });
    this.cause = cause;
    this.repeated = repeated;
  }
}

async function unwrapped<R>(asked: Promise<R>): Promise<R> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof OwnerRefused ? error.cause : error;
  }
}

const REFUSAL_ERRORS: { readonly [C in OwnerErrorCode]: (refusal: OwnerRefusal) => ServiceError } = {
  NOT_FOUND: ({ message }) => new NotFound(message),
  FORBIDDEN: ({ message }) => new Forbidden(message),
  CONFLICT: ({ message }) => new Conflict(message),
  BAD_USER_INPUT: ({ message }) => new BadUserInput(message),
  QUOTA_EXCEEDED: ({ message, retryAfterSecs }) =>
    new QuotaExceeded(message, retryAfterSecs === undefined ? {} : { retryAfter: retryAfterSecs }),
  UNAVAILABLE: ({ message, retryAfterSecs }) => new Unavailable(message, { retryAfterSecs }),
};

function refusalError(refusal: OwnerRefusal): ServiceError {
  return REFUSAL_ERRORS[refusal.code](refusal);
}

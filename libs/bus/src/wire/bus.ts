/**
 * The bus as its users see it: requests, answers and fire-and-forget messages, all JSON, but for a field `data` of a request, or of
 * the `value` of an answer, that holds bytes. The stored kinds (partition
 * log, leases, chunks) have files of their own and take a `Bus`.
 */
import type { EventEmitter } from 'node:events';
import type { RequestContext } from '@penstock/telemetry/request';

export interface BusEvents {
  /** The connection broke. Requests under way have failed with `BrokerAway`; publishes are dropped until it is back. */
  disconnected: [];
  /** It is back, subscriptions are in place again. What was published meanwhile was not received. */
  reconnected: [];
  /** Closed for good. */
  closed: [];
}

export interface RequestOptions {
  readonly timeoutMs: number;
}

export interface RetryOptions {
  /** For the whole exchange, all tries together. */
  readonly deadlineMs: number;
  /** For one try; default: what is left of the deadline. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Returned by a handler that answers later, through its `Responder`. */
export const LATER: unique symbol = Symbol('answered later');

/** One request that waits for its answer. Exactly one of the methods takes effect, once; later calls do nothing. */
export interface Responder<Rep> {
  readonly subject: string;
  /** Which request its sender served; undefined: none, or it did not say. */
  readonly request: RequestContext | undefined;
  answer(reply: Rep): void;
  /** The requester gets a `RemoteError`. */
  fail(): void;
  /** No answer at all: the requester runs into its deadline (P3, from `released` on an owner answers nothing). */
  drop(): void;
}

export type RequestHandler<Req, Rep> = (body: Req, call: Responder<Rep>) => Rep | Promise<Rep> | typeof LATER;

export interface RespondOptions {
  /** Of several responders with the same name, one gets each request: for services that share their work. Default: each gets every request. */
  readonly queue?: string | undefined;
  /** Requests without an answer yet; more are refused with `busy`. Default 10,000. */
  readonly pendingMax?: number | undefined;
  /** A request not answered in this time counts as dropped. Default 60,000. */
  readonly pendingMsMax?: number | undefined;
}

export interface BusSubscription {
  /** Ends it. Messages that are on their way are not handled any more. Unanswered requests can still be answered. */
  stop(): void;
}

export interface Bus {
  readonly name: string;
  readonly connected: boolean;
  readonly events: EventEmitter<BusEvents>;

  /**
   * One request, one answer (long answers come in parts and are joined). What it is asked for (`currentRequest()`) goes along. Throws `NoResponders`, `RequestTimeout`,
   * `BrokerAway`, `RemoteError`, `BadReply`, `MessageTooLarge` or `NotPermitted`.
   */
  request<Req, Rep>(subject: string, body: Req, options: RequestOptions): Promise<Rep>;

  /**
   * The same, repeated with a jittered backoff while it has reached nobody (`NoResponders`, `BrokerAway` before it was
   * sent, `busy`), until the deadline; then throws the last of these. An answer that stays away is not retried.
   */
  requestRetrying<Req, Rep>(subject: string, body: Req, options: RetryOptions): Promise<Rep>;

  /** Answers requests to `subject` (wildcards allowed). Every responder gets every request, but for those of a `queue`. */
  respond<Req, Rep>(subject: string, handler: RequestHandler<Req, Rep>, options?: RespondOptions): BusSubscription;

  /** Fire and forget, at most once; dropped while there is no connection. Throws `MessageTooLarge`. */
  publish<T>(subject: string, body: T): void;

  /** What is not JSON is logged and dropped; a handler's exception (or rejection) is logged. Handlers are not waited for. */
  subscribe<T>(subject: string, handler: (body: T, message: { readonly subject: string }) => void): BusSubscription;

  /** Resolves when the broker has seen everything sent so far, subscriptions included. Throws `BrokerAway`, `RequestTimeout`. */
  flush(timeoutMs?: number): Promise<void>;

  /** Drains within the deadline (default 2,000 ms), then closes in any case. */
  close(deadlineMs?: number): Promise<void>;
}

/**
 * Answering requests on one subject. It owns the requests that have come and are not answered yet.
 *
 * RESPONDER-1 A request is answered at most once, whatever the handler does.
 * RESPONDER-2 At most `pendingMax` wait; one more is refused with `busy` before its handler sees it.
 * RESPONDER-3 One that is not answered in `pendingMsMax` is forgotten: its requester has given up long before.
 */
import { type BusSubscription, LATER, type RequestHandler, type RespondOptions, type Responder } from './bus.ts';
import { BrokerAway, type RemoteFailure } from '../contract/errors.ts';
import { decodeBody, encodeBody } from './body.ts';
import { sendFailure, sendReply } from './replies.ts';
import { requestIn } from './request-headers.ts';
import type { RequestContext } from '@penstock/telemetry/request';
import type { WireMessage } from './short-way.ts';
import type { Wire } from './wire.ts';

/** What a partition may hold unanswered while a commit is in flight: the limit of live runs a key has (10,000). */
const PENDING_MAX = 10_000;
const PENDING_MS_MAX = 60_000;
const SWEEP_MS = 5_000;

export function startResponder<Req, Rep>(
  wire: Wire,
  subject: string,
  handler: RequestHandler<Req, Rep>,
  options: RespondOptions,
): BusSubscription {
  const pendingMax = options.pendingMax ?? PENDING_MAX;
  const pending = new PendingCalls(options.pendingMsMax ?? PENDING_MS_MAX);

  const receive = wire.received((message) => {
    const replyTo = message.reply;
    if (!replyTo) return wire.log.warn({ subject: message.subject }, 'a request without a reply subject');
    if (pending.size >= pendingMax) return refuse(wire, replyTo, message.subject, 'busy');
    let body: Req;
    try {
      body = decodeBody<Req>(message.data);
    } catch (error) {
      wire.log.warn({ err: error, subject: message.subject }, 'a request that is not JSON');
      return refuse(wire, replyTo, message.subject, 'bad_request');
    }
    const call = new Call<Rep>(wire, message, replyTo, pending);
    const failed = (error: unknown): void => {
      wire.log.error({ err: error, subject: message.subject }, 'a request handler failed');
      call.fail();
    };
    try {
      const result = handler(body, call);
      if (result instanceof Promise) result.then((reply) => call.answer(reply), failed);
      else if (result !== LATER) call.answer(result as Rep);
    } catch (error) {
      failed(error);
    }
  });

  const subscription = wire.connection.subscribe(subject, {
    ...(options.queue === undefined ? {} : { queue: options.queue }),
    callback: (error, message) => {
      if (error === null) receive(message);
      else wire.log.error({ err: error, subject }, 'a responder lost its subscription');
    },
  });
  const shortWay = options.queue === undefined ? wire.shortWay?.answer(subject, receive) : undefined;
  return {
    stop: () => {
      shortWay?.stop();
      subscription.unsubscribe();
    },
  };
}

class Call<Rep> implements Responder<Rep> {
  readonly subject: string;
  readonly request: RequestContext | undefined;
  readonly #wire: Wire;
  readonly #replyTo: string;
  readonly #pending: PendingCalls;

  constructor(wire: Wire, message: WireMessage, replyTo: string, pending: PendingCalls) {
    this.subject = message.subject;
    this.request = requestIn(message.headers);
    this.#wire = wire;
    this.#replyTo = replyTo;
    this.#pending = pending;
    pending.add(this);
  }

  answer(reply: Rep): void {
    if (!this.#pending.delete(this)) return;
    try {
      sendReply(this.#wire, this.#replyTo, encodeBody(reply ?? null));
    } catch (error) {
      logUnsent(this.#wire, this.subject, error);
    }
  }

  fail(): void {
    if (this.#pending.delete(this)) refuse(this.#wire, this.#replyTo, this.subject, 'failed');
  }

  drop(): void {
    this.#pending.delete(this);
  }
}

/** In the order of their arrival, so that a sweep looks at the oldest only. */
class PendingCalls {
  readonly #since = new Map<object, number>();
  readonly #msMax: number;
  #sweep: NodeJS.Timeout | undefined;

  constructor(msMax: number) {
    this.#msMax = msMax;
  }

  get size(): number {
    return this.#since.size;
  }

  add(call: object): void {
    this.#since.set(call, performance.now());
    this.#sweep ??= setInterval(() => this.#forgetOld(), Math.min(SWEEP_MS, this.#msMax)).unref();
  }

  delete(call: object): boolean {
    return this.#since.delete(call);
  }

  #forgetOld(): void {
    const now = performance.now();
    for (const [call, since] of this.#since) {
      if (now - since < this.#msMax) break;
      this.#since.delete(call);
    }
    if (this.#since.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

function refuse(wire: Wire, replyTo: string, subject: string, failure: RemoteFailure): void {
  try {
    sendFailure(wire, replyTo, failure);
  } catch (error) {
    logUnsent(wire, subject, error);
  }
}

/** Without a connection the requester's own side has failed the request already. */
function logUnsent(wire: Wire, subject: string, error: unknown): void {
  if (!(error instanceof BrokerAway)) wire.log.error({ err: error, subject }, 'an answer could not be sent');
}

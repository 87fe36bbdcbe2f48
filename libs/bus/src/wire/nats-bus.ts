/** The `Bus` over a `Wire`: JSON in and out, with bytes beside it where a body has some (`body.ts`). Long answers are split by the responder and joined here. */
import type { NatsConnection } from '@nats-io/transport-node';
import { backoffMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from './backoff.ts';
import type { Bus, BusSubscription, RequestHandler, RequestOptions, RespondOptions, RetryOptions } from './bus.ts';
import { BrokerAway, NoResponders, RemoteError, type RemoteFailure } from '../contract/errors.ts';
import { FAILURE_HEADER, PART_HEADER, PartJoiner, parseReply } from './replies.ts';
import { decodeBody, encodeBody } from './body.ts';
import { requestHeaders } from './request-headers.ts';
import { startResponder } from './responder.ts';
import type { Wire } from './wire.ts';

/** A partition changes hands in about a second: a gateway should notice soon after. */
const RETRY_MS_MAX = 250;
const FLUSH_TIMEOUT_MS = 5_000;
const CLOSE_DEADLINE_MS = 2_000;

const wires = new WeakMap<Bus, Wire>();

/** For this package's own modules: stored messages need more than JSON. */
export function wireOf(bus: Bus): Wire {
  const wire = wires.get(bus);
  if (wire === undefined) throw new TypeError('not a bus made by connectBus');
  return wire;
}

/** For packages that store what is no message (`@penstock/object-store`); all others speak through the bus. */
export function connectionOf(bus: Bus): NatsConnection {
  return wireOf(bus).connection;
}

export class NatsBus implements Bus {
  readonly name: string;
  readonly #wire: Wire;

  constructor(name: string, wire: Wire) {
    this.name = name;
    this.#wire = wire;
    wires.set(this, wire);
  }

  get connected(): boolean {
    return this.#wire.connected;
  }

  get events(): Bus['events'] {
    return this.#wire.events;
  }

  request<Req, Rep>(subject: string, body: Req, options: RequestOptions): Promise<Rep> {
    return new Promise((resolve, reject) => {
      let joined: PartJoiner | undefined;
      this.#wire.exchange(
        subject,
        encodeBody(body),
        requestHeaders(),
        options.timeoutMs,
        (message, handle) => {
          const failure = message.headers?.get(FAILURE_HEADER);
          if (failure) return handle.fail(new RemoteError(subject, failure as RemoteFailure));
          const part = message.headers?.get(PART_HEADER);
          let bytes: Uint8Array | null = message.data;
          if (part) {
            joined ??= new PartJoiner(subject);
            bytes = joined.add(part, message.data);
            if (bytes === null) return;
          }
          resolve(parseReply<Rep>(subject, bytes));
          handle.done();
        },
        (error) => {
          if (error !== null) reject(error);
        },
      );
    });
  }

  async requestRetrying<Req, Rep>(subject: string, body: Req, options: RetryOptions): Promise<Rep> {
    const deadline = performance.now() + options.deadlineMs;
    for (let attempt = 1; ; attempt += 1) {
      options.signal?.throwIfAborted();
      const leftMs = Math.max(1, deadline - performance.now());
      try {
        return await this.request<Req, Rep>(subject, body, {
          timeoutMs: Math.min(leftMs, options.timeoutMs ?? leftMs),
        });
      } catch (error) {
        const waitMs = backoffMs(attempt, { ...BROKER_BACKOFF, maxMs: RETRY_MS_MAX });
        if (!reachedNobody(error) || performance.now() + waitMs >= deadline) throw error;
        await pause(waitMs, options.signal);
      }
    }
  }

  respond<Req, Rep>(subject: string, handler: RequestHandler<Req, Rep>, options: RespondOptions = {}): BusSubscription {
    return startResponder(this.#wire, subject, handler, options);
  }

  publish<T>(subject: string, body: T): void {
    if (this.#wire.connected) this.#wire.send(subject, JSON.stringify(body));
  }

  subscribe<T>(subject: string, handler: (body: T, message: { readonly subject: string }) => void): BusSubscription {
    const { log } = this.#wire;
    const subscription = this.#wire.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) return log.error({ err: error, subject }, 'a subscription failed');
        const failed = (cause: unknown): void =>
          log.error({ err: cause, subject: message.subject }, 'a message could not be handled');
        try {
          const result: unknown = handler(decodeBody<T>(message.data), { subject: message.subject });
          if (result instanceof Promise) result.catch(failed);
        } catch (cause) {
          failed(cause);
        }
      },
    });
    return { stop: () => subscription.unsubscribe() };
  }

  flush(timeoutMs: number = FLUSH_TIMEOUT_MS): Promise<void> {
    return this.#wire.flush(timeoutMs);
  }

  close(deadlineMs: number = CLOSE_DEADLINE_MS): Promise<void> {
    return this.#wire.close(deadlineMs);
  }
}

function reachedNobody(error: unknown): boolean {
  if (error instanceof NoResponders) return true;
  if (error instanceof BrokerAway) return !error.sent;
  return error instanceof RemoteError && error.failure === 'busy';
}

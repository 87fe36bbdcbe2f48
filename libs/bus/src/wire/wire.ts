/**
 * The raw side of a bus: one NATS connection and the exchanges under way on it. Not exported from the package.
 *
 * It owns the inbox that all answers of this connection arrive at. The client's own `request` is not used, because an
 * exchange of ours (1) fails at once when the connection breaks, where the client waits for its timeout; (2) may have
 * several answers (parts, batches) with a deadline between them, where the client's batch reads wait without end and
 * leave a subscription behind; (3) is cheaper: no stack trace and no second timer promise for each.
 *
 * WIRE-1 Every exchange ends exactly once: by its last answer, its deadline, an abort, a lost connection or `close`.
 * WIRE-2 Nothing is sent while disconnected: the client would keep it in an unbounded buffer and drop it at the next dial.
 * WIRE-3 A message that its receiver cannot handle costs that message and nothing behind it, nor the connection that brought it.
 */
import { EventEmitter } from 'node:events';
import { createInbox, type MsgHdrs, type NatsConnection, PermissionViolationError } from '@nats-io/transport-node';
import type { BusEvents } from './bus.ts';
import { BrokerAway, MessageTooLarge, NoResponders, NotPermitted, RequestTimeout } from '../contract/errors.ts';
import { within } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';
import { guarded } from '@penstock/telemetry/borders';
import { ShortWay, type WireMessage } from './short-way.ts';

/** Room for subject, reply and headers beside the payload in the broker's limit, which counts headers too. */
const HEADER_BYTES_RESERVED = 1_024;

interface Exchange {
  readonly subject: string;
  readonly timeoutMs: number;
  timer: NodeJS.Timeout;
  onMessage(message: WireMessage): void;
  onEnd(error: Error | null): void;
}

export interface ExchangeHandle {
  /** The last answer has come. */
  done(): void;
  fail(error: Error): void;
  /** Starts the deadline anew; for exchanges of many answers. */
  touch(): void;
}

export class Wire {
  readonly connection: NatsConnection;
  readonly log: Log;
  readonly events = new EventEmitter<BusEvents>();
  connected = true;
  /** Undefined: what this process asks of itself goes by the broker too. */
  readonly shortWay: ShortWay | undefined;
  #closed = false;
  readonly #inboxPrefix: string;
  readonly #inbox: string;
  readonly #exchanges = new Map<string, Exchange>();
  readonly #tellEnd: (exchange: Exchange, error: Error | null) => void;
  #nextToken = 0;

  constructor(connection: NatsConnection, inboxPrefix: string, log: Log, answersItself = false) {
    this.connection = connection;
    this.log = log;
    // One listener for each log, watch and responder of a process: their number is the design's, not a leak.
    this.events.setMaxListeners(0);
    this.#inboxPrefix = inboxPrefix;
    this.#inbox = `${this.newInbox()}.`;
    this.#tellEnd = guarded('bus.message', { log }, (exchange, error) => exchange.onEnd(error));
    const receive = this.received((message) => this.#receive(message));
    this.shortWay = answersItself ? new ShortWay(this.#inbox, receive) : undefined;
    connection.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error === null) receive(message);
        else this.log.error({ err: error }, 'the inbox subscription failed');
      },
    });
    void this.#followStatus();
    void connection.closed().then((error) => this.#end(error instanceof Error ? error : undefined));
  }

  /** The broker's limit for a payload, headers allowed for. */
  get payloadBytesMax(): number {
    return (this.connection.info?.max_payload ?? 1_048_576) - HEADER_BYTES_RESERVED;
  }

  /** A subject of our own that others may send to; within what the broker permits us. */
  newInbox(): string {
    return createInbox(this.#inboxPrefix);
  }

  /** What takes messages by whatever way: it throws no more (WIRE-3). */
  received<M extends WireMessage>(receive: (message: M) => void): (message: M) => void {
    return guarded('bus.message', { log: this.log }, receive);
  }

  /** Publishes, or throws `BrokerAway` (WIRE-2), `MessageTooLarge`. */
  send(subject: string, payload: string | Uint8Array, headers?: MsgHdrs, reply?: string): void {
    const data = this.#sendable(subject, payload);
    if (this.shortWay?.carry({ subject, data, headers, reply }) !== true) this.#publish(subject, data, headers, reply);
  }

  #sendable(subject: string, payload: string | Uint8Array): Uint8Array {
    if (!this.connected)
      throw new BrokerAway(this.#closed ? 'the bus is closed' : 'no connection to the broker', false);
    const data = typeof payload === 'string' ? Buffer.from(payload) : payload;
    if (data.length > this.payloadBytesMax) throw new MessageTooLarge(subject, data.length, this.payloadBytesMax);
    return data;
  }

  #publish(subject: string, data: Uint8Array, headers: MsgHdrs | undefined, reply: string | undefined): void {
    if (headers === undefined) this.connection.publish(subject, data, reply === undefined ? {} : { reply });
    else this.connection.publish(subject, data, reply === undefined ? { headers } : { headers, reply });
  }

  /** Sends a request; `onMessage` gets each answer until the handle is done or failed, then `onEnd` is called once. */
  exchange(
    subject: string,
    payload: string | Uint8Array,
    headers: MsgHdrs | undefined,
    timeoutMs: number,
    onMessage: (message: WireMessage, handle: ExchangeHandle) => void,
    onEnd: (error: Error | null) => void,
  ): ExchangeHandle {
    return this.#exchange(subject, timeoutMs, onMessage, onEnd, (reply) => this.send(subject, payload, headers, reply));
  }

  #exchange(
    subject: string,
    timeoutMs: number,
    onMessage: (message: WireMessage, handle: ExchangeHandle) => void,
    onEnd: (error: Error | null) => void,
    send: (reply: string) => void,
  ): ExchangeHandle {
    const token = (this.#nextToken++).toString(36);
    const handle: ExchangeHandle = {
      done: () => this.#finish(token, null),
      fail: (error) => this.#finish(token, error),
      touch: () => void this.#exchanges.get(token)?.timer.refresh(),
    };
    const timer = setTimeout(() => this.#finish(token, new RequestTimeout(subject, timeoutMs)), timeoutMs);
    this.#exchanges.set(token, {
      subject,
      timeoutMs,
      timer,
      onMessage: (message) => onMessage(message, handle),
      onEnd,
    });
    try {
      send(this.#inbox + token);
    } catch (error) {
      handle.fail(error as Error);
    }
    return handle;
  }

  /**
   * One request to the broker itself, one raw answer. Nobody here is looked for who might answer: of what is stored nearly each
   * has a subject of its own, and who is found by a subject is remembered.
   */
  call(
    subject: string,
    payload: string | Uint8Array,
    headers: MsgHdrs | undefined,
    timeoutMs: number,
  ): Promise<WireMessage> {
    return new Promise((resolve, reject) => {
      this.#exchange(
        subject,
        timeoutMs,
        (message, handle) => {
          resolve(message);
          handle.done();
        },
        (error) => {
          if (error !== null) reject(error);
        },
        (reply) => this.#publish(subject, this.#sendable(subject, payload), headers, reply),
      );
    });
  }

  async flush(timeoutMs: number): Promise<void> {
    if (!this.connected) throw new BrokerAway('no connection to the broker', false);
    const flushed = this.connection.flush().catch((error: unknown) => {
      throw new BrokerAway('the connection to the broker broke', true, { cause: error });
    });
    await within(timeoutMs, flushed, () => {
      throw new RequestTimeout('the broker', timeoutMs);
    });
  }

  async close(deadlineMs: number): Promise<void> {
    if (this.#closed) return;
    // A drain without a connection never ends, and one that meets a closing connection rejects: both end in `close`.
    if (this.connected) await within(deadlineMs, this.connection.drain(), () => {}).catch(() => {});
    await this.connection.close();
    this.#end(undefined);
  }

  #receive(message: WireMessage): void {
    const token = message.subject.slice(this.#inbox.length);
    const exchange = this.#exchanges.get(token);
    if (exchange === undefined) return; // answered after its end
    if (message.data.length === 0 && message.headers?.code === 503) {
      this.#finish(token, new NoResponders(exchange.subject));
      return;
    }
    try {
      exchange.onMessage(message);
    } catch (error) {
      this.#finish(token, error as Error);
    }
  }

  #finish(token: string, error: Error | null): void {
    const exchange = this.#exchanges.get(token);
    if (exchange === undefined) return;
    this.#exchanges.delete(token);
    clearTimeout(exchange.timer);
    this.#tellEnd(exchange, error);
  }

  async #followStatus(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type === 'disconnect') this.#disconnected();
      else if (status.type === 'reconnect') this.#reconnected();
      else if (status.type === 'error') this.#refused(status.error);
    }
  }

  #disconnected(): void {
    if (!this.connected || this.#closed) return;
    this.connected = false;
    this.#failAll('the connection to the broker broke');
    this.log.warn({}, 'the connection to the broker broke');
    this.#tell('disconnected');
  }

  #reconnected(): void {
    if (this.connected || this.#closed) return;
    this.connected = true;
    this.log.info({ server: this.connection.getServer() }, 'connected to the broker again');
    this.#tell('reconnected');
  }

  /** The broker tells a forbidden publish by its subject only. */
  #refused(error: Error): void {
    this.log.warn({ err: error }, 'the broker reports an error');
    if (!(error instanceof PermissionViolationError) || error.operation !== 'publish') return;
    for (const [token, exchange] of this.#exchanges) {
      if (exchange.subject === error.subject) this.#finish(token, new NotPermitted(error.subject, { cause: error }));
    }
  }

  /** Each listener by itself: one that throws ends neither this loop, nor the process, nor what others hear. */
  #tell(event: keyof BusEvents): void {
    for (const listener of this.events.rawListeners(event))
      guarded('bus.connection', { log: this.log, about: { event } }, () => listener.call(this.events))();
  }

  #failAll(why: string): void {
    for (const token of this.#exchanges.keys()) this.#finish(token, new BrokerAway(why, true));
  }

  #end(error: Error | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.connected = false;
    this.#failAll('the bus was closed');
    if (error !== undefined) this.log.error({ err: error }, 'the connection to the broker ended');
    this.#tell('closed');
  }
}

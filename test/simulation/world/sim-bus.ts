/**
 * The bus of one process in one of its lives, by the contract of libs/bus: JSON in and out, errors by their classes, nothing of it
 * for a process that is no more. What is sent is shown to the witness first.
 */
import { EventEmitter } from 'node:events';
import { backoffMs, withoutJitter } from '@penstock/async';
import {
  BrokerAway,
  LATER,
  MessageTooLarge,
  NoResponders,
  RemoteError,
  RequestTimeout,
  type AttemptRef,
  type Bus,
  type BusSubscription,
  type CommittedEvents,
  type Job,
  type JobReply,
  type PullReply,
  type Release,
  type ResultReply,
  type ResultRequest,
  type StopReply,
  type StopRequest,
} from '@penstock/bus';
import type { Answer, Exchange } from './exchange.ts';
import { refOf } from './attempts.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

/** What a broker takes, without room for headers. */
export const MESSAGE_BYTES_MAX = 1_000_000;
const RETRY_MS_MAX = 250;
const BYTES_AT = 'svc.registry.';

export class SimBus implements Bus {
  readonly name: string;
  readonly events: Bus['events'] = new EventEmitter();
  readonly #world: World;
  readonly #exchange: Exchange;
  readonly #node: SimNode;

  constructor(world: World, exchange: Exchange, node: SimNode) {
    this.name = node.name;
    this.#world = world;
    this.#exchange = exchange;
    this.#node = node;
  }

  get connected(): boolean {
    return this.#node.linked;
  }

  request<Req, Rep>(subject: string, body: Req, { timeoutMs }: { readonly timeoutMs: number }): Promise<Rep> {
    const world = this.#world;
    this.#witness(subject, body);
    return world.promise((resolve, reject) => {
      const text = textOf(subject, body);
      this.#exchange.request(this.#node, subject, text, timeoutMs, (answer) => {
        if (answer.kind === 'reply') {
          const reply = parsed<Rep>(subject, answer.text);
          this.#witnessReply(subject, body, reply);
          resolve(reply);
        } else if (answer.kind === 'no-responders' && world.mutation === 'late-no-responders-frees' && isRepeated(body))
          resolve({ ...refOf(body), answer: 'refused' } satisfies JobReply as Rep);
        else {
          if (answer.kind === 'no-responders') this.#markUnheard(subject, body);
          reject(errorOf(answer, subject, timeoutMs));
        }
      });
    });
  }

  async requestRetrying<Req, Rep>(
    subject: string,
    body: Req,
    options: Parameters<Bus['requestRetrying']>[2],
  ): Promise<Rep> {
    const deadline = this.#world.now + options.deadlineMs;
    for (let attempt = 1; ; attempt += 1) {
      options.signal?.throwIfAborted();
      const leftMs = Math.max(1, deadline - this.#world.now);
      try {
        return await this.request<Req, Rep>(subject, body, {
          timeoutMs: Math.min(leftMs, options.timeoutMs ?? leftMs),
        });
      } catch (error) {
        const waitMs = backoffMs(attempt, { firstMs: 100, maxMs: RETRY_MS_MAX, random: withoutJitter });
        const reachedNobody = error instanceof NoResponders || error instanceof BrokerAway;
        if (!reachedNobody || this.#world.now + waitMs >= deadline) throw error;
        await this.#world.pause(this.#node, waitMs, options.signal);
      }
    }
  }

  respond<Req, Rep>(
    subject: string,
    handler: Parameters<typeof respondOf<Req, Rep>>[0],
    options?: { readonly queue?: string | undefined },
  ): BusSubscription {
    const handle = respondOf<Req, Rep>(
      handler,
      (error) => this.#world.failWith(error),
      (sentTo, body, reply) => this.#witnessAnswer(sentTo, body, reply),
    );
    return this.#exchange.listen(this.#node, subject, handle, options?.queue);
  }

  publish<T>(subject: string, body: T): void {
    this.#witness(subject, body);
    const text = textOf(subject, body);
    this.#exchange.publish(this.#node, subject, text);
  }

  subscribe<T>(subject: string, handler: (body: T, message: { readonly subject: string }) => void): BusSubscription {
    return this.#exchange.listen(this.#node, subject, (text, sentTo) => {
      try {
        handler(JSON.parse(text) as T, { subject: sentTo });
      } catch (error) {
        this.#world.failWith(error);
      }
    });
  }

  async flush(): Promise<void> {}

  async close(): Promise<void> {}

  #witness(subject: string, body: unknown): void {
    const { witness } = this.#world;
    switch (subject.slice(0, subject.indexOf('.'))) {
      case 'events':
        witness.shown(body as CommittedEvents);
        break;
      case 'job':
        witness.jobSent(body as Job, (body as Job).epoch);
        break;
      case 'stop':
        witness.stopSent(body as StopRequest);
        break;
      case 'release':
        for (const runId of (body as Release).runIds) witness.runClosed(runId);
        break;
      default:
    }
  }

  /** At who was asked, as it answers. */
  #witnessAnswer(subject: string, body: unknown, reply: unknown): void {
    const verb = subject.slice(0, subject.indexOf('.'));
    if (verb === 'job' || verb === 'stop')
      this.#world.witness.runnerAnswered(body as AttemptRef, verb, (reply as JobReply | StopReply).answer);
  }

  /** At who asked, as it hears the answer. */
  #witnessReply(subject: string, body: unknown, reply: unknown): void {
    if (subject.startsWith('pull.') && (reply as PullReply).withdrawn.length > 0) this.#world.mark('credit withdrawn');
    if (!subject.includes('.result.')) return;
    const result = reply as ResultReply;
    if (!result.ok) return;
    this.#world.mark(`result ${result.answer}`);
    this.#world.witness.resultAnswered(body as ResultRequest, result.answer);
  }

  #markUnheard(subject: string, body: unknown): void {
    if (subject.startsWith('job.'))
      this.#world.mark(isRepeated(body) ? 'no responders to a repeated grant' : 'no responders to a first grant');
  }
}

function respondOf<Req, Rep>(
  handler: (
    body: Req,
    call: { subject: string; request: undefined; answer(reply: Rep): void; fail(): void; drop(): void },
  ) => unknown,
  failed: (error: unknown) => void,
  answered: (subject: string, body: Req, reply: Rep) => void,
): Parameters<Exchange['listen']>[2] {
  return (text, subject, reply) => {
    const asked = parsed<Req>(subject, text);
    let open = true;
    const once = (act: () => void): void => {
      if (!open) return;
      open = false;
      act();
    };
    const call = {
      subject,
      request: undefined,
      answer: (body: Rep) =>
        once(() => {
          answered(subject, asked, body);
          reply({ kind: 'reply', text: JSON.stringify(body ?? null) });
        }),
      fail: () => once(() => reply({ kind: 'failed', failure: 'failed' })),
      drop: () => once(() => {}),
    };
    try {
      const result = handler(asked, call);
      if (result instanceof Promise) result.then((body) => call.answer(body as Rep), failed);
      else if (result !== LATER) call.answer(result as Rep);
    } catch (error) {
      failed(error);
    }
  };
}

function errorOf(answer: Exclude<Answer, { kind: 'reply' }>, subject: string, timeoutMs: number): Error {
  switch (answer.kind) {
    case 'failed':
      return new RemoteError(subject, answer.failure);
    case 'no-responders':
      return new NoResponders(subject);
    case 'away':
      return new BrokerAway('there is no connection', false);
    case 'silence':
      return new RequestTimeout(subject, timeoutMs);
  }
}

function textOf(subject: string, body: unknown): string {
  const text = JSON.stringify(body);
  if (text.length > MESSAGE_BYTES_MAX / 3 && Buffer.byteLength(text) > MESSAGE_BYTES_MAX)
    throw new MessageTooLarge(subject, Buffer.byteLength(text), MESSAGE_BYTES_MAX);
  return text;
}

/** What goes to the registry and comes from it may have bytes in it. */
function parsed<T>(subject: string, text: string): T {
  return JSON.parse(text, subject.startsWith(BYTES_AT) ? withBytes : undefined) as T;
}

function withBytes(_key: string, value: unknown): unknown {
  const { type, data } = (value ?? {}) as { readonly type?: unknown; readonly data?: readonly number[] };
  return type === 'Buffer' && data !== undefined ? Buffer.from(data) : value;
}

function isRepeated(body: unknown): body is Job {
  return (body as Partial<Job>).repeated === true;
}

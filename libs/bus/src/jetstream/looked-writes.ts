/**
 * What runners of single tenants would store, for who looks at it before the broker does (P37, PERMISSION-3). It owns the subscription;
 * whether a write goes on is its caller's to say.
 *
 *  LOOKED-1 A write that goes on is stored under the runner's own name, and what the broker answers is its answer. No answer of the broker
 *     is none.
 *  LOOKED-2 Of its headers those alone go on that a lease is made of: one more could empty the bucket for everybody.
 */
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import type { Bus, BusSubscription } from '../wire/bus.ts';
import { parseJson } from '../wire/body.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { buckets, streams, subjects } from '../contract/subjects.ts';
import { MARK_HEADER } from './lease.ts';

export interface LookedWrite {
  readonly kind: 'chunk' | 'lease';
  readonly runner: string;
  /** Of a chunk its run, of a lease its session. */
  readonly of: string;
  readonly bytes: Uint8Array;
  /** Of the whole message, its headers included. */
  readonly size: number;
  /** For how long a lease is to live; NaN: it does not say. */
  readonly ttlMs: number;
  /** The lease is ended. */
  readonly isEnd: boolean;
  /** Resolves when nothing of it is under way any more: with true where the broker has said that it is stored. */
  pass(): Promise<boolean>;
  /** Its runner takes it for stored, and it is kept nowhere. */
  swallow(): void;
}

/** As long as a runner waits for it. */
const STORE_MS = 5_000;
const LOOKED = subjects.looked('');
const TTL = 'Nats-TTL';
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';

/** Without a word to it a write is as one that never came: its runner tries again. */
export function lookAtWrites(bus: Bus, look: (write: LookedWrite) => void): BusSubscription {
  const wire = wireOf(bus);
  const { connection, log } = wire;
  const receive = wire.received((message: Msg) => {
    // Asked anew: the broker takes no question whose answer would go to another account.
    const write = writeOf(message, async (subject, head) => {
      try {
        const { data } = await wire.call(subject, message.data, head, STORE_MS);
        message.respond(data);
        return parseJson<{ readonly error?: unknown }>(data).error === undefined;
      } catch (cause) {
        log.warn({ err: cause, subject }, "what a tenant's runner stores was not answered");
        return false;
      }
    });
    if (write !== null) look(write);
  });
  const subscription = connection.subscribe(`${LOOKED}>`, {
    callback: (error, message) => {
      if (error === null) receive(message);
      else log.error({ err: error }, "what tenants' runners store is not heard");
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

function writeOf(
  message: Msg,
  publish: (subject: string, head: MsgHdrs | undefined) => Promise<boolean>,
): LookedWrite | null {
  const subject = message.subject.slice(LOOKED.length);
  const [first, second = '', third = '', fourth = ''] = subject.split('.');
  const header = (name: string): string => message.headers?.get(name) ?? '';
  const isEnd = header('KV-Operation') === 'PURGE' && message.data.length === 0;
  const common = { bytes: message.data, size: sizeOf(message), isEnd, ttlMs: ttlMsOf(header(TTL)) };
  if (first === 'log') {
    const swallow = (): void => void message.respond(JSON.stringify({ stream: streams.logs, seq: 0 }));
    return { ...common, kind: 'chunk', runner: third, of: second, pass: () => publish(subject, undefined), swallow };
  }
  if (first !== '$KV' || second !== buckets.runners) return null;
  const pass = (): Promise<boolean> => {
    const head = headers();
    for (const name of [EXPECTED, TTL, MARK_HEADER]) if (header(name) !== '') head.set(name, header(name));
    if (isEnd) {
      head.set('KV-Operation', 'PURGE');
      head.set('Nats-Rollup', 'sub');
    }
    return publish(subject, head);
  };
  return { ...common, kind: 'lease', runner: third, of: fourth, pass, swallow: () => {} };
}

/** Its headers as they came, whatever is read of them. The client's type does not say that it knows. */
function sizeOf(message: Msg): number {
  return (message as Msg & { size(): number }).size();
}

/** As `store` writes it. */
function ttlMsOf(text: string): number {
  const [, ms] = /^(\d{1,9})ms$/u.exec(text) ?? [];
  return ms === undefined ? Number.NaN : Number(ms);
}

/**
 * A line between the buses of two threads: each asks the other straight, where both answer themselves (`ShortWay`).
 *
 * THREADLINE-1 No more than WAITING_MAX messages wait at an end for its thread: a thread handles all that wait there in one turn, and others are
 *     to have theirs. What comes beyond goes by the broker, and so does an answer that is no plain one, for its parts must not overtake
 *     each other.
 */
import type { MessagePort } from 'node:worker_threads';
import { headers as makeHeaders, type MsgHdrs } from '@nats-io/transport-node';
import type { Bus } from './bus.ts';
import { wireOf } from './nats-bus.ts';
import type { Line, ShortWay, WireMessage } from './short-way.ts';

const WAITING_MAX = 32;

/** What crosses; the first is where answers arrive, and the count of what waits there. */
type Crossing =
  | { readonly inbox: string; readonly waiting: Int32Array }
  | { readonly answers: string; readonly isAnswered: boolean }
  | (Omit<WireMessage, 'headers'> & { readonly headers?: [string, string[]][] | undefined });

/**
 * Until the port is closed. Both threads call it, each with its end. Where the bus does not answer itself, nothing is asked by it. What
 * else its owners send by the port is left to their own listeners.
 */
export function linkThreads(bus: Bus, port: MessagePort): void {
  const { shortWay } = wireOf(bus);
  if (shortWay === undefined) return;
  const waiting = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let link: ReturnType<ShortWay['link']> | undefined;
  port.on('message', (crossing: Crossing) => {
    if ('subject' in crossing) {
      Atomics.sub(waiting, 0, 1);
      shortWay.arrive({ ...crossing, headers: headersOf(crossing.headers) });
    } else if ('answers' in crossing) link?.answers(crossing.answers, crossing.isAnswered);
    else if ('inbox' in crossing) link = shortWay.link(lineOver(port, crossing.inbox, crossing.waiting));
  });
  port.once('close', () => link?.end());
  port.unref();
  const hello: Crossing = { inbox: shortWay.inbox, waiting };
  port.postMessage(hello);
}

function lineOver(port: MessagePort, inbox: string, waiting: Int32Array): Line {
  const post = (crossing: Crossing, given: ArrayBuffer[]): void => port.postMessage(crossing, given);
  return {
    inbox,
    tell: (answers, isAnswered) => post({ answers, isAnswered }, []),
    carry({ subject, data, headers, reply }) {
      if (reply === undefined && headers !== undefined) return false;
      if (Atomics.add(waiting, 0, 1) >= WAITING_MAX) {
        Atomics.sub(waiting, 0, 1);
        return false;
      }
      // By itself: a message stands in memory that it shares with others.
      const bytes = new Uint8Array(data);
      post({ subject, data: bytes, headers: headers && [...headers], reply }, [bytes.buffer]);
      return true;
    },
  };
}

function headersOf(crossed: [string, string[]][] | undefined): MsgHdrs | undefined {
  if (crossed === undefined) return undefined;
  const headers = makeHeaders();
  for (const [name, values] of crossed) for (const value of values) headers.append(name, value);
  return headers;
}

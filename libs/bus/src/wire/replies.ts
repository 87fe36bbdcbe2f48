/** The forms of an answer on the wire: JSON whole or in parts, or a failure. */
import { headers } from '@nats-io/transport-node';
import { BadReply, type RemoteFailure } from '../contract/errors.ts';
import { decodeBody } from './body.ts';
import type { Wire } from './wire.ts';

/** Parts of an answer, below the broker's limit of 1 MiB with room for headers. */
const PART_BYTES = 512 * 1024;
/** A joined answer beyond this is refused: it would be a bug of the responder's, not a page of anything. */
const REPLY_BYTES_MAX = 64 * 1024 * 1024;
/** `<index>/<count>`, index from 1. */
export const PART_HEADER = 'Penstock-Part';
/** A `RemoteFailure`. */
export const FAILURE_HEADER = 'Penstock-Failure';

export function parseReply<T>(subject: string, data: Uint8Array): T {
  try {
    return decodeBody<T>(data);
  } catch (error) {
    throw new BadReply(subject, 'not JSON', { cause: error });
  }
}

/** Parts come from one connection through one subscription, and so in order; one that is missing is an error. */
export class PartJoiner {
  readonly #subject: string;
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(subject: string) {
    this.#subject = subject;
  }

  /** The whole, when this was the last part. */
  add(label: string, data: Uint8Array): Uint8Array | null {
    const [index, count] = label.split('/').map(Number);
    this.#parts.push(data);
    this.#bytes += data.length;
    if (index !== this.#parts.length || count === undefined)
      throw new BadReply(this.#subject, `part ${label} after ${this.#parts.length - 1}`);
    if (this.#bytes > REPLY_BYTES_MAX) throw new BadReply(this.#subject, `longer than ${REPLY_BYTES_MAX} bytes`);
    return index === count ? Buffer.concat(this.#parts) : null;
  }
}

/** The answer, in as many messages as it needs. */
export function sendReply(wire: Wire, replyTo: string, body: string | Uint8Array): void {
  // A character is at most three bytes: most answers are known to be short without being measured.
  if (typeof body === 'string' && body.length * 3 <= PART_BYTES) return wire.send(replyTo, body);
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  if (typeof body !== 'string' && bytes.length <= wire.payloadBytesMax) return wire.send(replyTo, bytes);
  const count = Math.ceil(bytes.length / PART_BYTES);
  if (count === 1) return wire.send(replyTo, bytes);
  for (let index = 1; index <= count; index += 1) {
    const head = headers();
    head.set(PART_HEADER, `${index}/${count}`);
    wire.send(replyTo, bytes.subarray((index - 1) * PART_BYTES, index * PART_BYTES), head);
  }
}

export function sendFailure(wire: Wire, replyTo: string, failure: RemoteFailure): void {
  const head = headers();
  head.set(FAILURE_HEADER, failure);
  wire.send(replyTo, '{}', head);
}

/**
 * Requests whose bodies do not come in crumbs. Each piece of a chunked body costs microseconds and an object, however short it is:
 * six megabytes that bring a million bytes, one at a time, would take seconds of the loop that everybody's requests need, and a
 * hundred times the memory that their length says.
 */
import type { IncomingMessage } from 'node:http';
import { answerMalformed } from './malformed.ts';

/** As many come in whatever length: some hundredths of a second. */
const PIECES_FREE = 10_000;
/** Of all pieces together, beyond those. What is sent as it is made still has more than that in a packet. */
const PIECE_BYTES_MEAN_MIN = 32;

/** For `createServer`. Whoever sends crumbs is answered 400 once, and nothing more of it is read. */
export function countedRequests(): typeof IncomingMessage {
  const { IncomingMessage: Request } = process.getBuiltinModule('node:http');
  return class CountedRequest extends Request {
    #pieces = 0;
    #bytes = 0;

    override push(piece: unknown, encoding?: BufferEncoding): boolean {
      if (piece === null) return super.push(piece);
      this.#pieces += 1;
      this.#bytes += (piece as Uint8Array).length;
      if (this.#pieces <= PIECES_FREE || this.#bytes >= this.#pieces * PIECE_BYTES_MEAN_MIN)
        return super.push(piece, encoding);
      answerMalformed(Object.assign(new Error('a body in crumbs'), { code: 'BODY_IN_CRUMBS' }), this.socket);
      // Nothing more is read of this connection then.
      return false;
    }
  };
}

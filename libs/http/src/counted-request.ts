/**
 * Requests whose bodies do not come in crumbs. Each piece of a chunked body costs microseconds and an object, however short it is:
 * six megabytes that bring a million bytes, one at a time, would take seconds of the loop that everybody's requests need.
 *
 *  COUNTED-1 What nobody has asked for yet is kept as `BodyPieces` has it: a stream of events may go on for hours beside a body that nobody
 *     wants, whose ten thousand pieces would hold some four megabytes.
 */
import type { ServerResponse } from 'node:http';
import { BodyPieces } from './body-pieces.ts';
import { answerMalformed } from './malformed.ts';

/** As many come in whatever length: some hundredths of a second. */
const PIECES_FREE = 10_000;
/** Of all pieces together, beyond those. What is sent as it is made still has more than that in a packet. */
const PIECE_BYTES_MEAN_MIN = 32;

/** For `createServer`. Whoever sends crumbs is answered 400 once, and no more of that body is read. */
export function countedRequests() {
  const { IncomingMessage: Request } = process.getBuiltinModule('node:http');
  return class CountedRequest extends Request {
    /** Set by the server that handles it. */
    answer: Pick<ServerResponse, 'socket' | 'headersSent'> | undefined = undefined;
    #pieces = 0;
    #bytes = 0;
    #isRefused = false;
    /** Somebody has begun to read. */
    #isAsked = false;
    /** Of what nobody has asked for yet; most bodies are one piece. */
    #first: Buffer | undefined;
    #others: BodyPieces | undefined;
    #hasEnded = false;

    override push(piece: unknown, encoding?: BufferEncoding): boolean {
      // Its end neither: what has come of it is not the body.
      if (this.#isRefused) return false;
      if (piece === null) return this.#end();
      this.#pieces += 1;
      this.#bytes += (piece as Uint8Array).length;
      if (this.#pieces <= PIECES_FREE || this.#bytes >= this.#pieces * PIECE_BYTES_MEAN_MIN)
        return this.#isAsked ? super.push(piece, encoding) : this.#keep(piece as Buffer);
      this.#isRefused = true;
      this.#refuse();
      return false;
    }

    /** Whoever waits for more of it would have the connection go on. */
    override _read(bytes: number): void {
      if (this.#isRefused) return;
      this.#giveKept();
      super._read(bytes);
    }

    /** False: the connection is read no further before somebody asks. */
    #keep(piece: Buffer): boolean {
      if (this.#first === undefined) this.#first = piece;
      else {
        this.#others ??= new BodyPieces();
        this.#others.add(piece);
      }
      return this.#bytes < this.readableHighWaterMark;
    }

    #end(): boolean {
      if (this.#first === undefined) return super.push(null);
      this.#hasEnded = true;
      return false;
    }

    #giveKept(): void {
      this.#isAsked = true;
      const [first, others] = [this.#first, this.#others];
      this.#first = undefined;
      this.#others = undefined;
      if (first !== undefined) super.push(first);
      if (others !== undefined) for (const piece of others.all()) super.push(piece);
      if (!this.#hasEnded) return;
      this.#hasEnded = false;
      super.push(null);
    }

    #refuse(): void {
      const { answer, socket } = this;
      // Behind a part of this answer, or of another's before it, there is no place for one.
      if (answer === undefined || answer.socket !== socket || answer.headersSent) socket.destroy();
      else answerMalformed(Object.assign(new Error('a body in crumbs'), { code: 'BODY_IN_CRUMBS' }), socket);
    }
  };
}

/**
 * The straight way to who keeps bytes, for one content a connection. It owns what is known of it: that nobody could be reached by
 * it lately, and that it need not be asked for then.
 */
import type { RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { NotFound, ServiceError, serviceErrorOf, TaggedError, type ErrorCode } from '@penstock/errors';
import { letGo } from '../let-go.ts';
import type { DirectContent } from '../messages.ts';
import { LINE_IDLE_MS_MAX, LINE_TLS } from './line-security.ts';

/** No connection, or one that ended early: by the broker the same can be had. */
export class DirectWayBroken extends TaggedError {
  readonly tag = 'DirectWayBroken';
}

const CONNECT_MS_MAX = 5_000;
/** A port that a network keeps shut is not knocked at for every file. */
const SHUT_MS = 60_000;
/** A connection gives 16 KiB at a time, and each piece has its price with whoever passes it on. */
const PIECE_BYTES = 256 * 1024;
const ANSWER_BYTES_MAX = 64 * 1024;
const STORED = 204;
const HERE = 200;

export class DirectWay {
  #shutUntil = 0;
  readonly #onShut: (error: Error) => void;

  /** `onShut`: nobody was reached; the broker is asked for a while. */
  constructor(onShut: (error: Error) => void = () => {}) {
    this.#onShut = onShut;
  }

  get isOpen(): boolean {
    return performance.now() >= this.#shutUntil;
  }

  /** Done when it is stored. @throws ServiceError, as it was answered; DirectWayBroken; the signal's reason */
  async send(
    to: DirectContent,
    sizeBytes: number,
    bytes: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const asked = this.#ask(to, { method: 'PUT', headers: { 'content-length': sizeBytes }, signal });
    let isAnswered = false;
    const answered = answerOf(asked).finally(() => {
      isAnswered = true;
    });
    answered.catch(() => {});
    try {
      let given = 0;
      for await (const piece of bytes) {
        given += piece.length;
        // Whoever has refused it already reads no further.
        if (isAnswered || given > sizeBytes) break;
        await written(asked, piece);
      }
      if (!isAnswered && given !== sizeBytes) throw new NotFound('The file has changed while it was read.');
      asked.end();
      const response = await answered;
      if (response.statusCode !== STORED) throw await refusalOf(response);
      response.resume();
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      asked.destroy();
    }
  }

  /** Each piece is the reader's own. Ends early where the connection does. @throws ServiceError; DirectWayBroken; the signal's reason */
  async *read(from: DirectContent, signal?: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const asked = this.#ask(from, { method: 'GET', signal });
    try {
      const answered = answerOf(asked);
      asked.end();
      const response = await answered;
      if (response.statusCode !== HERE) throw await refusalOf(response);
      yield* gathered(response as AsyncIterable<Uint8Array>);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ServiceError || error instanceof DirectWayBroken) throw error;
      throw new DirectWayBroken('the connection ended early', { cause: error });
    } finally {
      asked.destroy();
    }
  }

  #ask({ host, port, ticket, key }: DirectContent, options: RequestOptions): ClientRequest {
    const secured: RequestOptions & ConnectionOptions = {
      ...options,
      ...LINE_TLS,
      host,
      port,
      path: '/content',
      agent: false,
      pskCallback: () => ({ identity: ticket, psk: Buffer.from(key, 'base64') }),
      // Who has the key is who gave the ticket: nobody has a certificate.
      checkServerIdentity: () => undefined,
    };
    // Not imported: that would load `fetch` and all it needs for every command.
    const asked = process.getBuiltinModule('node:https').request(secured);
    let isReached = false;
    const reaching = setTimeout(() => asked.destroy(new Error('no connection in time')), CONNECT_MS_MAX);
    asked.once('socket', (socket) =>
      (socket as TLSSocket).once('secureConnect', () => {
        isReached = true;
        clearTimeout(reaching);
      }),
    );
    asked.setTimeout(LINE_IDLE_MS_MAX, () => asked.destroy(new Error('nothing came for a while')));
    asked.on('error', (error) => {
      if (isReached || options.signal?.aborted === true) return;
      this.#shutUntil = performance.now() + SHUT_MS;
      this.#onShut(error);
    });
    asked.once('close', () => clearTimeout(reaching));
    return asked;
  }
}

function answerOf(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((answered, failed) => {
    const broken = (cause?: Error): void => failed(new DirectWayBroken('the connection ended early', { cause }));
    asked.once('response', answered);
    asked.once('error', broken);
    asked.once('close', () => broken());
  });
}

/** The next piece may take its memory then. What goes wrong is seen by who waits for the answer. */
function written(asked: ClientRequest, piece: Uint8Array): Promise<void> {
  return new Promise((done) => {
    const over = (): void => {
      asked.off('close', over);
      done();
    };
    // What a connection that never came about had waiting is called back by nobody.
    asked.once('close', over);
    if (asked.closed) over();
    else asked.write(piece, over);
  });
}

async function* gathered(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  const joined = (): Uint8Array => {
    const piece = Buffer.concat(waiting, length);
    for (const each of waiting) letGo(each);
    waiting = [];
    length = 0;
    return piece;
  };
  for await (const piece of bytes) {
    waiting.push(piece);
    length += piece.length;
    if (length >= PIECE_BYTES) yield joined();
  }
  if (length > 0) yield joined();
}

async function refusalOf(response: IncomingMessage): Promise<Error> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Uint8Array>) {
    length += piece.length;
    if (length > ANSWER_BYTES_MAX) break;
    pieces.push(piece);
  }
  try {
    const { code, message, extensions } = JSON.parse(Buffer.concat(pieces).toString('utf8')) as {
      readonly code: ErrorCode;
      readonly message: string;
      readonly extensions?: Readonly<Record<string, unknown>>;
    };
    return serviceErrorOf(code, message, extensions);
  } catch (cause) {
    return new DirectWayBroken(`it was answered with ${response.statusCode}`, { cause });
  }
}

/**
 * Reads `text/event-stream`: bytes in any pieces become messages. As the HTML standard says: lines end in LF, CR or CRLF,
 * a BOM at the start is dropped, an event without data is none, an id with NUL is ignored; and the id that a message
 * carries is set only when the message is complete, so that a cut one is asked for again.
 *
 * Memory is bounded: a message longer than MESSAGE_CHARACTERS_MAX is a broken server.
 */
import { ServerUnreached } from '../process/errors.ts';

/** A server's longest is a stage's last 64 KiB, each byte of which may become six in JSON. */
const MESSAGE_CHARACTERS_MAX = 4 * 1024 * 1024;

export interface StreamMessage {
  readonly event: string;
  readonly data: string;
}

export interface StreamHandlers {
  message(message: StreamMessage): void;
  /** The server's ping, for instance. */
  comment(text: string): void;
}

export class EventStreamParser {
  /** The id of the last complete message that carried one; '' before. */
  lastEventId = '';
  /** The time before a reconnect that the server asks for. */
  retryMs: number | undefined;
  readonly #handlers: StreamHandlers;
  readonly #decoder = new TextDecoder('utf-8');
  #text = '';
  /** A CR ended the last text: a LF that follows belongs to it. */
  #afterCarriageReturn = false;
  #event = '';
  #data: string[] = [];
  #dataLength = 0;
  #id: string | undefined;

  constructor(handlers: StreamHandlers) {
    this.#handlers = handlers;
  }

  push(bytes: Uint8Array): void {
    // What is left from before holds no line end, or it would have been taken.
    const searchFrom = this.#text.length;
    this.#text += this.#decoder.decode(bytes, { stream: true });
    const text = this.#text;
    let from = 0;
    let lineFeed = text.indexOf('\n', searchFrom);
    let carriageReturn = text.indexOf('\r', searchFrom);
    while (lineFeed !== -1 || carriageReturn !== -1) {
      const endsInReturn = lineFeed === -1 || (carriageReturn !== -1 && carriageReturn < lineFeed);
      const end = endsInReturn ? carriageReturn : lineFeed;
      // The LF of a CRLF ends nothing that its CR has not ended.
      const isSecondHalf = !endsInReturn && end === from && this.#afterCarriageReturn;
      this.#afterCarriageReturn = endsInReturn;
      if (!isSecondHalf) this.#line(text.slice(from, end));
      from = end + 1;
      if (endsInReturn) carriageReturn = text.indexOf('\r', from);
      else lineFeed = text.indexOf('\n', from);
    }
    if (from < text.length) this.#afterCarriageReturn = false;
    this.#text = text.slice(from);
    if (this.#text.length + this.#dataLength > MESSAGE_CHARACTERS_MAX)
      throw new ServerUnreached('the server sent a message without an end: is it a Penstock server?');
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) {
      this.#handlers.comment(line.slice(1).trim());
      return;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length + 1;
    } else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch(): void {
    if (this.#id !== undefined) this.lastEventId = this.#id;
    const message = { event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#event = '';
    this.#data = [];
    this.#dataLength = 0;
    this.#id = undefined;
    if (!isEmpty) this.#handlers.message(message);
  }
}

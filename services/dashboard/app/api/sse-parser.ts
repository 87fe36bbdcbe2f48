/** Server-sent events out of the pieces in which they arrive. Pure: `sse.ts` gives it the pieces. */

export interface ServerEvent {
  /** The cursor that the stream goes on behind; empty where the event has none. */
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** A single event that is larger than this is no event of ours. */
const EVENT_CHARS_MAX = 64 * 1024 * 1024;

export class SseParser {
  /** What has come of the line that is not over, in pieces: a line of ten megabytes comes in a hundred. */
  #pieces: string[] = [];
  #pending = 0;
  #id = '';
  #name = '';
  #data: string[] = [];
  #afterReturn = false;

  /** The events that `text` completes, one by one. */
  *push(text: string): Generator<ServerEvent> {
    if (text === '') return;
    let from = 0;
    // "\r\n" whose halves came apart is one end of a line.
    if (this.#afterReturn && text.startsWith('\n')) from = 1;
    this.#afterReturn = false;
    // Looked for once and not at each line: a server of ours sends none, and each look would go through all that has come.
    let carriage = text.indexOf('\r', from);
    for (;;) {
      if (carriage >= 0 && carriage < from) carriage = text.indexOf('\r', from);
      const feed = text.indexOf('\n', from);
      const end = feed < 0 || (carriage >= 0 && carriage < feed) ? carriage : feed;
      if (end < 0) break;
      const event = this.#line(this.#pieces.join('') + text.slice(from, end));
      this.#pieces = [];
      this.#pending = 0;
      from = end + 1;
      if (text[end] === '\r') {
        if (from === text.length) this.#afterReturn = true;
        else if (text[from] === '\n') from += 1;
      }
      if (event !== null) yield event;
    }
    if (from === text.length) return;
    this.#pieces.push(text.slice(from));
    this.#pending += text.length - from;
    if (this.#pending > EVENT_CHARS_MAX) throw new RangeError('The server sent an event that is too large to be one.');
  }

  #line(line: string): ServerEvent | null {
    if (line === '') {
      const [name, data] = [this.#name, this.#data];
      this.#name = '';
      this.#data = [];
      return data.length === 0 ? null : { id: this.#id, name: name === '' ? 'message' : name, data: data.join('\n') };
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'id' && !value.includes('\0')) this.#id = value;
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
    return null;
  }
}

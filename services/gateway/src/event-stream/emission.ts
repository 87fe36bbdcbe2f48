/**
 * What an event stream emits, in pieces that are handled as one: an event, or consecutive lines of one chunk. Each message has a
 * position of its own. JSON is made when it is first wanted: a replay skips most of it. Lines stay the bytes that they came as.
 */
import { isUtf8 } from 'node:buffer';
import { isoTime, type PublicEvent, type PublicRunEvent } from '@penstock/run';
import type { OutputStream } from '@penstock/bus';
import type { StreamPosition } from './cursor.ts';

interface SomeEmission {
  /** Of its first message; each further one has the next index. */
  readonly position: StreamPosition;
  /** The SSE event of its messages; their data's `type` is the same. */
  readonly event: PublicEvent['type'];
  /** How many messages it is; at least one. */
  readonly count: number;
  /** Of one message, counted from 0: one line of JSON. */
  data(index: number): string;
  /** About how many bytes it takes in a stream. */
  readonly size: number;
}

export type Emission = LineEmission | EventEmission;

/** `id`, `event`, `data` and their line ends, beside the data's own length. */
const FRAME_BYTES = 80;
const LINE_FIELDS_BYTES = 110;
/** Of one emission: with the longest lines it takes a write, with the shortest half of one. */
const LINES_MAX = 128;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export class LineEmission implements SomeEmission {
  readonly event = 'stage_log';
  readonly position: StreamPosition;
  readonly count: number;
  readonly size: number;
  readonly envelope: LineEnvelope;
  /** Its lines with their ends, in valid UTF-8. */
  readonly bytes: Buffer;

  constructor(position: StreamPosition, envelope: LineEnvelope, bytes: Buffer, count: number) {
    this.position = position;
    this.envelope = envelope;
    this.bytes = bytes;
    this.count = count;
    this.size = bytes.length + count * (FRAME_BYTES + LINE_FIELDS_BYTES);
  }

  data(index: number): string {
    const from = this.offsetOf(index);
    const end = lineEnd(this.bytes, from);
    // Of a line that has no end a carriage return is the last character.
    const isCrlf = end > from && end < this.bytes.length && this.bytes[end - 1] === CARRIAGE_RETURN;
    return (
      this.envelope.head +
      JSON.stringify(this.bytes.toString('utf8', from, isCrlf ? end - 1 : end)) +
      this.envelope.tail
    );
  }

  /** Where one of its lines begins in its bytes. */
  offsetOf(index: number): number {
    let offset = 0;
    for (let before = 0; before < index; before += 1) offset = lineEnd(this.bytes, offset) + 1;
    return offset;
  }
}

/** What all lines of one part of a chunk have in common. */
export interface LineEnvelope {
  readonly head: string;
  readonly tail: string;
}

export function lineEnvelope(stage: string, stream: OutputStream, at: number): LineEnvelope {
  return {
    head: `{"type":"stage_log","stage":${JSON.stringify(stage)},"stream":${JSON.stringify(stream)},"line":`,
    tail: `,"timestamp":"${isoTime(at)}"}`,
  };
}

/** The lines of `output`; `positionOf` answers the position of the first of so many lines, in the order of its calls. */
export function* lineEmissions(
  output: Buffer,
  envelope: LineEnvelope,
  positionOf: (count: number) => StreamPosition,
): Iterable<LineEmission> {
  const bytes = isUtf8(output) ? output : Buffer.from(output.toString('utf8'));
  let from = 0;
  let count = 0;
  for (let at = 0; at < bytes.length;) {
    at = lineEnd(bytes, at) + 1;
    count += 1;
    if (count < LINES_MAX && at < bytes.length) continue;
    yield new LineEmission(positionOf(count), envelope, bytes.subarray(from, at), count);
    from = at;
    count = 0;
  }
}

/** Where the line feed of the line is that begins at `from`; the end of the bytes where it has none. */
function lineEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(LINE_FEED, from);
  return end < 0 ? bytes.length : end;
}

export class EventEmission implements SomeEmission {
  readonly position: StreamPosition;
  readonly event: PublicRunEvent['type'];
  readonly count = 1;
  readonly #data: string;

  constructor(position: StreamPosition, event: PublicRunEvent) {
    this.position = position;
    this.event = event.type;
    this.#data = JSON.stringify(event);
  }

  get size(): number {
    return this.#data.length + FRAME_BYTES;
  }

  data(): string {
    return this.#data;
  }
}

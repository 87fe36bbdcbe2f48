/**
 * What an event stream emits, in pieces that are handled as one: an event, or consecutive lines of one chunk. Each message has a
 * position of its own. JSON is made when it is first wanted: a replay skips most of it.
 */
import { isoTime, type PublicEvent, type PublicRunEvent } from '@penstock/run';
import type { OutputStream } from '@penstock/bus';
import type { StreamPosition } from './cursor.ts';

export interface Emission {
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

/** `id`, `event`, `data` and their line ends, beside the data's own length. */
const FRAME_BYTES = 80;
const LINE_FIELDS_BYTES = 110;
/** Of one emission: with the longest lines and the shortest it takes about two writes. */
const LINES_MAX = 256;
export class LineEmission implements Emission {
  readonly event = 'stage_log';
  readonly position: StreamPosition;
  readonly size: number;
  readonly #envelope: LineEnvelope;
  readonly #lines: readonly string[];

  constructor(position: StreamPosition, envelope: LineEnvelope, lines: readonly string[]) {
    this.position = position;
    this.#envelope = envelope;
    this.#lines = lines;
    let length = 0;
    for (const line of lines) length += line.length;
    this.size = length + lines.length * (FRAME_BYTES + LINE_FIELDS_BYTES);
  }

  get count(): number {
    return this.#lines.length;
  }

  data(index: number): string {
    return this.#envelope.head + JSON.stringify(this.#lines[index] ?? '') + this.#envelope.tail;
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

/** The lines of `text`; `positionOf` answers the position of the first of so many lines, in the order of its calls. */
export function* lineEmissions(
  text: string,
  envelope: LineEnvelope,
  positionOf: (count: number) => StreamPosition,
): Iterable<LineEmission> {
  const lines = linesOf(text);
  for (let from = 0; from < lines.length; from += LINES_MAX) {
    const some = lines.slice(from, from + LINES_MAX);
    yield new LineEmission(positionOf(some.length), envelope, some);
  }
}

/** Without their ends, `\n` or `\r\n`. A text that does not end in one has its rest as a line. */
function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (!text.includes('\r\n')) return lines;
  return lines.map((line, index) =>
    line.endsWith('\r') && (index < lines.length - 1 || text.endsWith('\n')) ? line.slice(0, -1) : line,
  );
}

export class EventEmission implements Emission {
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

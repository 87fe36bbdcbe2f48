/** The messages of an event stream, each with its position. JSON is made when it is first wanted: a replay skips most of it. */
import { isoTime, type PublicEvent, type PublicRunEvent } from '@penstock/run';
import type { OutputStream } from '@penstock/bus';
import type { StreamPosition } from './cursor.ts';

export interface EmittedMessage {
  readonly position: StreamPosition;
  /** The SSE event; the data's `type` is the same. */
  readonly event: PublicEvent['type'];
  /** One line of JSON. */
  data(): string;
  /** About how many bytes it takes in a stream. */
  readonly size: number;
}

/** `id`, `event`, `data` and their line ends, beside the data's own length. */
const FRAME_BYTES = 80;
const LINE_FIELDS_BYTES = 110;

export class LineMessage implements EmittedMessage {
  readonly event = 'stage_log';
  readonly position: StreamPosition;
  readonly #head: string;
  readonly #line: string;
  readonly #tail: string;

  constructor(position: StreamPosition, envelope: LineEnvelope, line: string) {
    this.position = position;
    this.#head = envelope.head;
    this.#line = line;
    this.#tail = envelope.tail;
  }

  get size(): number {
    return this.#line.length + FRAME_BYTES + LINE_FIELDS_BYTES;
  }

  data(): string {
    return this.#head + JSON.stringify(this.#line) + this.#tail;
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

export class EventMessage implements EmittedMessage {
  readonly position: StreamPosition;
  readonly event: PublicRunEvent['type'];
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

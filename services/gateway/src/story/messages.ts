/** What a watcher is told, as the contract words it. JSON is made when it is first wanted: a replay skips most of it. */
import { isoTime, type RunEvent } from '@penstock/run';
import type { OutputStream } from '@penstock/bus';
import type { Place } from './cursor.ts';

export interface StoryMessage {
  readonly place: Place;
  /** The SSE event; the data's `type` is the same. */
  readonly event: string;
  /** One line of JSON. */
  data(): string;
  /** About how many bytes it takes in a stream. */
  readonly size: number;
}

/** `id`, `event`, `data` and their line ends, beside the data's own length. */
const FRAME_BYTES = 80;
const LINE_FIELDS_BYTES = 110;

export class LineMessage implements StoryMessage {
  readonly event = 'stage_log';
  readonly place: Place;
  readonly #head: string;
  readonly #line: string;
  readonly #tail: string;

  constructor(place: Place, frame: LineFrame, line: string) {
    this.place = place;
    this.#head = frame.head;
    this.#line = line;
    this.#tail = frame.tail;
  }

  get size(): number {
    return this.#line.length + FRAME_BYTES + LINE_FIELDS_BYTES;
  }

  data(): string {
    return this.#head + JSON.stringify(this.#line) + this.#tail;
  }
}

/** What all lines of one part of a chunk have in common. */
export interface LineFrame {
  readonly head: string;
  readonly tail: string;
}

export function lineFrame(stage: string, stream: OutputStream, at: number): LineFrame {
  return {
    head: `{"type":"stage_log","stage":${JSON.stringify(stage)},"stream":"${stream}","line":`,
    tail: `,"timestamp":"${isoTime(at)}"}`,
  };
}

export class EventMessage implements StoryMessage {
  readonly place: Place;
  readonly event: string;
  readonly #data: string;

  constructor(version: number, fields: { readonly type: string; readonly [field: string]: unknown }) {
    this.place = { kind: 'event', version };
    this.event = fields.type;
    this.#data = JSON.stringify(fields);
  }

  get size(): number {
    return this.#data.length + FRAME_BYTES;
  }

  data(): string {
    return this.#data;
  }
}

/** The text of a stage for `stage_completed`. */
export interface StageText {
  readonly text: string;
  readonly truncated: boolean;
}

/** Null: this event is no part of the story. `text` is asked for only where it is shown. */
export function messageOf(version: number, event: RunEvent, text: () => StageText): EventMessage | null {
  const timestamp = isoTime(event.at);
  switch (event.type) {
    case 'stage_started':
      return new EventMessage(version, {
        type: 'stage_started',
        stage: event.stage,
        status: 'Running',
        timestamp,
        attempt: event.attempt,
      });
    case 'stage_retrying':
      return new EventMessage(version, {
        type: 'stage_retrying',
        stage: event.stage,
        status: 'Failed',
        timestamp,
        attempt: event.attempt,
        reason: event.reason,
        exitCode: event.exitCode,
        dueAt: isoTime(event.dueAt),
      });
    case 'stage_completed': {
      const logs = text();
      return new EventMessage(version, {
        type: 'stage_completed',
        stage: event.stage,
        status: event.status === 'SUCCESS' ? 'Success' : 'Failed',
        logs: logs.text,
        ...(logs.truncated ? { truncated: true } : {}),
        timestamp,
        attempt: event.attempt,
        reason: event.reason,
        exitCode: event.exitCode,
      });
    }
    case 'stage_skipped':
      return new EventMessage(version, {
        type: 'stage_skipped',
        stage: event.stage,
        status: 'Skipped',
        reason: event.reason,
        timestamp,
      });
    case 'run_completed':
      return new EventMessage(version, {
        type: 'pipeline_completed',
        status: event.status,
        timestamp,
        outcome: event.outcome,
        reason: event.reason,
      });
    case 'run_quarantined':
      return new EventMessage(version, {
        type: 'pipeline_completed',
        status: 'FAILED',
        timestamp,
        outcome: 'quarantined',
        reason: 'quarantined',
      });
    case 'run_cancelled':
      return new EventMessage(version, {
        type: 'pipeline_cancelled',
        status: 'CANCELLED',
        cancelledStages: event.cancelledStages,
        timestamp,
      });
    default:
      return null;
  }
}

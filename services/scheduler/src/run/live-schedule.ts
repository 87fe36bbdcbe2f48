/**
 * A schedule as its owner has it: as decided, and as committed. Its text stays packed; it is read when a tick is fired.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ResolvedExtension } from '@penstock/pipeline';
import { evolveSchedule, newSchedule, type ScheduleEvent, type ScheduleState, type Sequence } from '@penstock/run';

/** A text, and what its `uses` were resolved to. */
interface ScheduleText {
  readonly yaml: string;
  readonly extensions?: readonly ResolvedExtension[] | undefined;
}

/** With its places in maps and queues, beside its text. */
const SCHEDULE_BYTES = 2 * 1024;
const LINE_BYTES = 1024;
const GONE_LINE_BYTES = 128;

export class LiveSchedule {
  readonly id: string;
  /** Undefined: nothing of it is decided yet; or, below, committed. */
  #decided: ScheduleState | undefined;
  #committed: ScheduleState | undefined;
  committedSequence: Sequence = 0;

  constructor(id: string, committed?: { readonly state: ScheduleState; readonly sequence: Sequence }) {
    this.id = id;
    this.#decided = committed?.state;
    this.#committed = committed?.state;
    this.committedSequence = committed?.sequence ?? 0;
  }

  get state(): ScheduleState | undefined {
    return this.#decided;
  }

  get committed(): ScheduleState | undefined {
    return this.#committed;
  }

  /** About how much memory it takes. */
  get bytes(): number {
    return bytesOf(this.#decided);
  }

  /** Answers the state as it then is; to be committed. */
  decide(event: ScheduleEvent): ScheduleState {
    const state = applied(this.id, this.#decided, event);
    this.#decided = state;
    return state;
  }

  /** A commit says that it stands so. */
  acknowledged(state: ScheduleState, sequence: Sequence): void {
    this.#committed = state;
    this.committedSequence = sequence;
  }
}

/** A state after an event of the journal; the first is `schedule_set`. */
export function applied(id: string, state: ScheduleState | undefined, event: ScheduleEvent): ScheduleState {
  if (state !== undefined) return evolveSchedule(state, event);
  if (event.type !== 'schedule_set') throw new Error(`the events of schedule ${id} do not begin with schedule_set`);
  return newSchedule(id, event);
}

export function bytesOf(state: ScheduleState | undefined): number {
  if (state === undefined) return SCHEDULE_BYTES;
  const { text, lines, gonePaused = [] } = state;
  return SCHEDULE_BYTES + text.length + lines.length * LINE_BYTES + gonePaused.length * GONE_LINE_BYTES;
}

export function packText({ yaml, extensions }: ScheduleText): string {
  return deflateRawSync(JSON.stringify([yaml, extensions ?? null]), { level: 3 }).toString('base64');
}

export function unpackText(text: string): ScheduleText {
  const [yaml, extensions] = JSON.parse(inflateRawSync(Buffer.from(text, 'base64')).toString('utf8')) as [
    string,
    readonly ResolvedExtension[] | null,
  ];
  return { yaml, ...(extensions === null ? {} : { extensions }) };
}

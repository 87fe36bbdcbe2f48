/** The schedules of a partition as its earlier owners left them: their documents, and what the log says behind each of them (P6, P28). */
import type { ScheduleState, Sequence } from '@penstock/run';
import type { ScheduleDocument } from '@penstock/store';
import type { RestoredSchedule } from '../partition/schedules.ts';
import type { ScheduleEntry } from '../run/commit.ts';
import { applied } from '../run/live-schedule.ts';

/** Of a commit: a log that was lost may have had higher sequences. */
interface Position {
  readonly incarnation: number;
  readonly sequence: Sequence;
}

interface Replayed {
  readonly state: ScheduleState;
  readonly at: Position;
  readonly isStored: boolean;
}

export class ReplayedSchedules {
  readonly #schedules = new Map<string, Replayed>();
  /** Their documents are damaged: what is not in the log of such a schedule is lost. */
  readonly #leftOut = new Set<string>();

  add({ state, incarnation, sequence }: ScheduleDocument): void {
    this.#schedules.set(state.id, { state, at: { incarnation, sequence }, isStored: true });
  }

  /** It goes on where its file is next set: as a new one. */
  leaveOut(id: string): void {
    this.#leftOut.add(id);
  }

  /** Of one commit. A document that was written later holds it already. */
  replay(entries: readonly ScheduleEntry[], at: Position): void {
    for (const { id, events: all } of entries) {
      const events = this.#leftOut.has(id) ? fromFile(all) : all;
      if (events.length === 0) continue;
      this.#leftOut.delete(id);
      const known = this.#schedules.get(id);
      if (known !== undefined && !isBehind(known.at, at)) continue;
      let state = known?.state;
      for (const event of events) state = applied(id, state, event);
      if (state !== undefined) this.#schedules.set(id, { state, at, isStored: false });
    }
  }

  /** One of a log that was lost stands for the opening: its next document is to count as newer. */
  restored({ incarnation, sequence }: Position): RestoredSchedule[] {
    return Array.from(this.#schedules.values(), ({ state, at, isStored }) =>
      at.incarnation === incarnation
        ? { state, sequence: at.sequence, isDirty: !isStored }
        : { state, sequence, isDirty: true },
    );
  }
}

export function isBehind(a: Position, b: Position): boolean {
  return a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.sequence < b.sequence);
}

function fromFile(events: ScheduleEntry['events']): ScheduleEntry['events'] {
  const first = events.findIndex(({ type }) => type === 'schedule_set');
  return first === -1 ? [] : events.slice(first);
}

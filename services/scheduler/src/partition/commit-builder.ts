/**
 * The commit that is being filled, and those that wait behind it: events of many runs join one message (P1), and what
 * is to happen once it is acknowledged waits with it, in order.
 */
import type { RunEvent, RunId, ScheduleEvent, ScheduleState, Version } from '@penstock/run';
import {
  COMMIT_BYTES_MAX,
  COMMIT_RUNS_MAX,
  DECISION_BYTES_MAX,
  encodeEvent,
  type DeletedEntry,
} from '../run/commit.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { LiveSchedule } from '../run/live-schedule.ts';

/** What follows from a large decision, such as the cancel of what a new head supersedes (P27), stands in its commit all the same. */
const FOLLOWING_BYTES_MAX = 4 * 1024;

export interface CommitDraft {
  readonly runs: Map<string, DraftEntry>;
  readonly schedules: Map<LiveSchedule, ScheduleDraftEntry>;
  /** With each entry as it stands in the commit. */
  readonly deleted: Map<DeletedEntry, string>;
  bytes: number;
  /** Carried out in order when the commit is acknowledged, after its events have been shown. */
  readonly afterwards: (() => void)[];
}

interface DraftEntry {
  readonly run: LiveRun;
  readonly id: RunId;
  readonly from: Version;
  readonly events: string[];
  to: Version;
}

interface ScheduleDraftEntry {
  readonly id: string;
  readonly events: string[];
  /** As the commit leaves it. */
  to: ScheduleState;
}

export class CommitBuilder {
  /** The last one is being filled; those before it are full. */
  #drafts: CommitDraft[] = [];

  /** Oldest first. */
  get drafts(): readonly CommitDraft[] {
    return this.#drafts;
  }

  get waiting(): number {
    return this.#drafts.length;
  }

  /** The draft that the next decision would join, where there is one. */
  get last(): CommitDraft | undefined {
    return this.#drafts.at(-1);
  }

  /** Adds the events of one decision; `from` is the version of the first. */
  add(run: LiveRun, from: Version, events: readonly RunEvent[]): CommitDraft {
    const encoded = events.map(encodeEvent);
    const bytes = encoded.reduce((sum, event) => sum + Buffer.byteLength(event) + 1, 0);
    let draft = this.last;
    const isFull =
      draft !== undefined &&
      (draft.bytes + bytes > DECISION_BYTES_MAX ||
        (draft.bytes > COMMIT_BYTES_MAX && bytes > FOLLOWING_BYTES_MAX) ||
        (draft.runs.size >= COMMIT_RUNS_MAX && !draft.runs.has(run.id)));
    if (draft === undefined || isFull) {
      draft = this.#next();
    }
    const entry = draft.runs.get(run.id);
    if (entry === undefined)
      draft.runs.set(run.id, { run, id: run.id, from, events: encoded, to: from + events.length - 1 });
    else {
      entry.events.push(...encoded);
      entry.to += events.length;
    }
    draft.bytes += bytes;
    return draft;
  }

  /** Adds an event of a schedule, which then stands at `to`: to the draft that has `run`, or to any that has room. */
  addSchedule(schedule: LiveSchedule, event: ScheduleEvent, to: ScheduleState, run: LiveRun | undefined): void {
    const encoded = JSON.stringify(event);
    const bytes = Buffer.byteLength(encoded) + 1;
    const of = run && this.#drafts.find((each) => each.runs.has(run.id));
    const draft = of ?? this.#withRoom(bytes);
    const entry = draft.schedules.get(schedule);
    if (entry === undefined) draft.schedules.set(schedule, { id: schedule.id, events: [encoded], to });
    else {
      entry.events.push(encoded);
      entry.to = to;
    }
    draft.bytes += bytes;
  }

  addDeletion(entry: DeletedEntry): void {
    const encoded = JSON.stringify(entry);
    const bytes = Buffer.byteLength(encoded) + 1;
    const draft = this.#withRoom(bytes);
    draft.deleted.set(entry, encoded);
    draft.bytes += bytes;
  }

  /** For what stands by itself. */
  #withRoom(bytes: number): CommitDraft {
    const last = this.last;
    const hasRoom = last !== undefined && last.bytes <= COMMIT_BYTES_MAX && last.bytes + bytes <= DECISION_BYTES_MAX;
    return hasRoom ? last : this.#next();
  }

  #next(): CommitDraft {
    const draft: CommitDraft = {
      runs: new Map(),
      schedules: new Map(),
      deleted: new Map(),
      bytes: 0,
      afterwards: [],
    };
    this.#drafts.push(draft);
    return draft;
  }

  /** Takes the oldest draft out, to be sent. */
  take(): CommitDraft | undefined {
    return this.#drafts.shift();
  }
}

/**
 * The schedules of a partition, those of repositories that are not connected any more too: what their newest files say, and
 * which of their lines are paused (P28). Owns them in memory, and which of them no document stands for yet.
 *
 *  SCHEDULES-1 What comes of a delivery that is not behind the known one in `DELIVERIES` changes nothing.
 *  SCHEDULES-2 What is answered or stored is committed.
 *  SCHEDULES-3 They take no more than SCHEDULES_BYTES_MAX together, an eighth of it those of one key, and of what is free a quarter: accounts
 *     cost nothing, and however many have as much as they may, there is room for another's.
 */
import type {
  PauseReply,
  PauseRequest,
  ScheduleView,
  SchedulesReply,
  SchedulesRequest,
  SetScheduleReply,
  SetScheduleRequest,
} from '@penstock/bus';
import { Counts } from '@penstock/async';
import { cronOf } from '@penstock/pipeline';
import {
  isoTime,
  nextLook,
  passedTick,
  type Epoch,
  type LineState,
  type ScheduleEvent,
  type ScheduleState,
  type Sequence,
} from '@penstock/run';
import { DECISION_BYTES_MAX } from '../run/commit.ts';
import { applied, bytesOf, LiveSchedule, packText } from '../run/live-schedule.ts';
import { lineIdOf, scheduleIdOf } from '../run/schedule-ids.ts';
import { inSlices } from '../run/slices.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { refusal, unavailable } from './refusals.ts';
import { Ticks, type TicksHost } from './ticks.ts';

/** What a document holds of a schedule, and the commit that it stands for. */
export interface RestoredSchedule {
  readonly state: ScheduleState;
  readonly sequence: Sequence;
  /** No document stands for it as it is. */
  readonly isDirty: boolean;
}

export interface DirtySchedule {
  readonly schedule: LiveSchedule;
  readonly state: ScheduleState;
  readonly sequence: Sequence;
}

export interface SchedulesHost extends Omit<TicksHost, 'cycle'> {
  readonly epoch: Epoch;
  readonly cycle: Pick<CommitCycle, 'addSchedule' | 'whenAllCommitted' | 'isTooSlow'>;
  accepts(): boolean;
  mayAnswer(): boolean;
}

const SCHEDULES_BYTES_MAX = 128 * 1024 * 1024;
const SCHEDULES_OF_KEY_BYTES_MAX = SCHEDULES_BYTES_MAX / 8;
const OF_KEY_SHARE_OF_FREE = 1 / 4;
/** Lines in one answer: some 400 bytes each with short inputs. */
const ANSWER_LINES_MAX = 500;
const ANSWER_CHARACTERS_MAX = 256 * 1024;

export class Schedules {
  readonly #host: SchedulesHost;
  readonly #all = new Map<string, LiveSchedule>();
  readonly #dirty = new Set<LiveSchedule>();
  readonly #ticks: Ticks;
  #bytes = 0;
  readonly #bytesByKey = new Counts();

  constructor(host: SchedulesHost) {
    this.#host = host;
    this.#ticks = new Ticks(host);
  }

  get isBusy(): boolean {
    return this.#ticks.isBusy;
  }

  *restore(restored: readonly RestoredSchedule[]): Generator<void, void> {
    yield* inSlices(restored, ({ state, sequence, isDirty }) => {
      const schedule = new LiveSchedule(state.id, { state, sequence });
      this.#all.set(state.id, schedule);
      this.#count(state.key, schedule.bytes);
      if (isDirty) this.#dirty.add(schedule);
      this.#ticks.changed(schedule, undefined);
    });
  }

  clear(): void {
    this.#all.clear();
    this.#dirty.clear();
    this.#ticks.clear();
    this.#bytes = 0;
    this.#bytesByKey.clear();
  }

  tick(): void {
    this.#ticks.tick();
  }

  // --- Requests ----------------------------------------------------------------------------------------------------

  set(request: SetScheduleRequest, reply: (reply: SetScheduleReply) => void): void {
    const { epoch, cycle, accepts, advance } = this.#host;
    if (!accepts()) return;
    const id = scheduleIdOf(request);
    const known = this.#all.get(id);
    const changesNothing =
      known?.state === undefined
        ? request.lines.length === 0
        : known.state.delivery.sequence >= request.delivery.sequence;
    if (!request.lines.every(({ cron }) => isCron(cron))) {
      reply(refusal(epoch, 'BAD_USER_INPUT', 'this scheduler cannot read a line of the schedule'));
      return;
    }
    const event = changesNothing ? undefined : setEventOf(request, this.#host.ports.now());
    const refused = event && this.#refusalOf(id, event, known);
    if (refused !== undefined) {
      reply(refused);
      return;
    }
    if (event !== undefined) this.#decide(known ?? this.#newSchedule(id), event);
    cycle.whenAllCommitted(() => {
      if (this.#host.mayAnswer()) reply({ ok: true, epoch });
    });
    advance();
  }

  pause({ id, tenants, paused }: PauseRequest, reply: (reply: PauseReply) => void): void {
    const { epoch, cycle, ports, accepts, mayAnswer, advance } = this.#host;
    if (!accepts()) return;
    const found = this.#find(id, tenants);
    if (found === undefined) {
      cycle.whenAllCommitted(() => {
        if (mayAnswer()) reply(notFound(epoch, id));
      });
      return;
    }
    const { schedule, line } = found;
    if ((line.paused === true) !== paused) {
      const now = ports.now();
      const passed = paused ? undefined : passedTick(line, now);
      const about = { at: now, line: id };
      this.#decide(
        schedule,
        paused
          ? { type: 'line_paused', ...about }
          : { type: 'line_resumed', ...about, ...(passed === undefined ? {} : { passed }) },
      );
    }
    cycle.whenAllCommitted(() => {
      const state = schedule.committed;
      const after = state?.lines.find((each) => each.id === id);
      if (!mayAnswer()) return;
      if (state === undefined || after === undefined) reply(notFound(epoch, id));
      else reply({ ok: true, epoch, schedule: viewOf(state, after, ports.now()) });
    });
    advance();
  }

  /** As committed. */
  list({ tenants, after = '' }: SchedulesRequest, reply: (reply: SchedulesReply) => void): void {
    const { epoch, ports, mayAnswer } = this.#host;
    if (!mayAnswer()) return;
    const now = ports.now();
    const found = [...this.#all.values()]
      .flatMap(({ committed }) => (committed !== undefined && tenants.includes(committed.tenant) ? [committed] : []))
      .flatMap((state) => state.lines.map((line) => ({ state, line })))
      .filter(({ line }) => line.id > after)
      .sort((a, b) => (a.line.id < b.line.id ? -1 : 1));
    const schedules: ScheduleView[] = [];
    let characters = 0;
    for (const { state, line } of found) {
      if (schedules.length === ANSWER_LINES_MAX || characters > ANSWER_CHARACTERS_MAX) break;
      const view = viewOf(state, line, now);
      characters += JSON.stringify(view.inputs).length + view.repository.length;
      schedules.push(view);
    }
    reply({ ok: true, epoch, schedules, more: schedules.length < found.length });
  }

  // --- Commits and documents ---------------------------------------------------------------------------------------

  /** A commit with decisions about it is stored. */
  committed(schedules: Iterable<LiveSchedule>): void {
    for (const schedule of schedules) if (this.#all.get(schedule.id) === schedule) this.#dirty.add(schedule);
  }

  /** Those with commits that no document stands for yet. */
  takeDirty(): readonly DirtySchedule[] {
    const taken = [...this.#dirty].flatMap((schedule) => {
      const { committed: state, committedSequence: sequence } = schedule;
      return state === undefined ? [] : [{ schedule, state, sequence }];
    });
    this.#dirty.clear();
    return taken;
  }

  /** The store did not take them. */
  stillDirty(schedules: Iterable<DirtySchedule>): void {
    this.committed(Array.from(schedules, ({ schedule }) => schedule));
  }

  #newSchedule(id: string): LiveSchedule {
    const schedule = new LiveSchedule(id);
    this.#all.set(id, schedule);
    return schedule;
  }

  #decide(schedule: LiveSchedule, event: ScheduleEvent): void {
    const before = schedule.state;
    const bytes = before === undefined ? 0 : schedule.bytes;
    this.#host.cycle.addSchedule(schedule, event);
    this.#count(schedule.state?.key ?? '', schedule.bytes - bytes);
    this.#ticks.changed(schedule, before);
  }

  #refusalOf(
    id: string,
    event: ReturnType<typeof setEventOf>,
    known: LiveSchedule | undefined,
  ): SetScheduleReply | undefined {
    const { epoch, cycle } = this.#host;
    if (Buffer.byteLength(JSON.stringify(event)) > DECISION_BYTES_MAX / 2)
      return refusal(
        epoch,
        'BAD_USER_INPUT',
        'the pipeline and its extensions are too large to be kept for its schedule',
      );
    if (cycle.isTooSlow) return unavailable(epoch, 'the journal is too slow');
    // One that takes no more than before is always taken: it may be one that ends.
    const more = bytesOf(applied(id, known?.state, event)) - (known?.bytes ?? 0);
    if (more > 0 && this.#bytesByKey.of(event.key) + more > SCHEDULES_OF_KEY_BYTES_MAX)
      return refusal(
        epoch,
        'QUOTA_EXCEEDED',
        `the schedules of one user, with their pipelines' texts, take at most ${SCHEDULES_OF_KEY_BYTES_MAX / 1024 ** 2} MiB, packed`,
      );
    if (more > 0 && this.#bytesByKey.of(event.key) + more > (SCHEDULES_BYTES_MAX - this.#bytes) * OF_KEY_SHARE_OF_FREE)
      return refusal(epoch, 'QUOTA_EXCEEDED', 'this server has no room for more schedules');
    return undefined;
  }

  #count(key: string, more: number): void {
    this.#bytes += more;
    this.#bytesByKey.add(key, more);
  }

  #find(
    id: string,
    tenants: readonly string[],
  ): { readonly schedule: LiveSchedule; readonly line: LineState } | undefined {
    for (const schedule of this.#all.values()) {
      const line = schedule.state?.lines.find((each) => each.id === id);
      if (line !== undefined && tenants.includes(schedule.state?.tenant ?? '')) return { schedule, line };
    }
    return undefined;
  }
}

function notFound(epoch: Epoch, id: string): PauseReply {
  return refusal(
    epoch,
    'NOT_FOUND',
    `There is no schedule '${id}' among those of your repositories as their newest files have them: \`penstock schedule ls\` (or \`schedules\`) lists them.`,
  );
}

function isCron(line: string): boolean {
  try {
    cronOf(line);
    return true;
  } catch {
    return false;
  }
}

function setEventOf(request: SetScheduleRequest, at: number): Extract<ScheduleEvent, { type: 'schedule_set' }> {
  const { yaml, extensions, lines, ...rest } = request;
  return {
    ...rest,
    type: 'schedule_set',
    at,
    text: lines.length === 0 ? '' : packText({ yaml, extensions }),
    lines: lines.map((line) => ({ ...line, id: lineIdOf(request, line) })),
  };
}

function viewOf({ provider, repository }: ScheduleState, line: LineState, now: number): ScheduleView {
  const next = nextLook(line, now);
  return {
    id: line.id,
    provider,
    repository,
    cron: line.cron,
    inputs: Object.entries(line.inputs ?? {}).map(([key, value]) => ({ key, value })),
    nextAt: next === undefined ? null : isoTime(next),
    lastRunId: line.lastRunId ?? null,
    paused: line.paused === true,
  };
}

/**
 * A repository's schedule: which runs its newest file wants at which times (P28). State and events are plain as JSON; a state is
 * never changed, each event makes another. A line is named by what it says, so that it goes on where a newer file has it too.
 */
import { cronOf, newestTick, nextTick, ticksBetween, type ScheduleLine } from '@penstock/pipeline';
import type { RunId, Sequence } from './brands.ts';

export type ScheduleEvent = ScheduleSet | TickFired | LinePaused | LineResumed;

/** What a push, or the end of a connection, says that the repository wants from now on. */
export interface ScheduleSet {
  readonly type: 'schedule_set';
  readonly at: number;
  readonly tenant: string;
  readonly key: string;
  readonly provider: string;
  readonly repository: string;
  /** Of the delivery in `DELIVERIES`, and when it was stored there, by the broker's clock. */
  readonly delivery: { readonly sequence: Sequence; readonly storedAt: number };
  readonly ref: string;
  readonly commit: string;
  readonly cloneUrl: string;
  readonly defaultBranch?: string | undefined;
  /** The path of the file. */
  readonly source: string;
  /** Its text with what its `uses` were resolved to, packed; '' where there are no lines. */
  readonly text: string;
  readonly lines: readonly NamedLine[];
  /** Makes ids of runs that nobody can guess. */
  readonly idKey: string;
  readonly limits?: ScheduleLimits | undefined;
}

interface NamedLine extends ScheduleLine {
  readonly id: string;
}

/** Of the key's tier, as the ingest knew it. */
interface ScheduleLimits {
  readonly pipelineRunLimit: number;
  readonly maxConcurrent: number;
  readonly keySlots?: number | undefined;
  readonly artifactBytes?: number | undefined;
  readonly retentionDays?: number | undefined;
  readonly retentionRuns?: number | undefined;
}

/** In the same commit as the run's creation; or alone, where the run was there before. */
interface TickFired {
  readonly type: 'tick_fired';
  readonly at: number;
  readonly line: string;
  readonly tick: number;
  readonly runId: RunId;
}

interface LinePaused {
  readonly type: 'line_paused';
  readonly at: number;
  readonly line: string;
}

/** `passed`: the newest tick that came while it was paused; it is not made up for. */
interface LineResumed {
  readonly type: 'line_resumed';
  readonly at: number;
  readonly line: string;
  readonly passed?: number | undefined;
}

export interface ScheduleState extends Omit<ScheduleSet, 'type' | 'at' | 'lines'> {
  readonly id: string;
  readonly lines: readonly LineState[];
  /** Ids of lines that were paused when a newer file had them no more, at most GONE_PAUSED_MAX; absent: none. */
  readonly gonePaused?: readonly string[] | undefined;
}

/** A file that is broken for a moment must not start what somebody has paused; of more lines the one that went first is forgotten. */
const GONE_PAUSED_MAX = 100;

export interface LineState extends NamedLine {
  /** No tick before this is its own. */
  readonly from: number;
  /** The tick that was fired, or passed over, last; a clock that was set back fires an earlier one than before. */
  readonly last?: number | undefined;
  /** Up to here each tick was fired, passed over or said to be missed. */
  readonly toldTo?: number | undefined;
  readonly lastRunId?: RunId | undefined;
  readonly paused?: true | undefined;
}

/** A tick that is due, and how many others of the line were missed before it. */
export interface DueTick {
  readonly tick: number;
  readonly missed: number;
}

export function newSchedule(id: string, event: ScheduleSet): ScheduleState {
  return set({ id, lines: [] }, event);
}

export function evolveSchedule(state: ScheduleState, event: ScheduleEvent): ScheduleState {
  switch (event.type) {
    case 'schedule_set':
      return set(state, event);
    case 'tick_fired':
      return changed(state, event.line, (line) => ({ ...done(line, event.tick), lastRunId: event.runId }));
    case 'line_paused':
      return changed(state, event.line, (line) => ({ ...line, paused: true }));
    case 'line_resumed':
      return changed(state, event.line, ({ paused: _, ...line }) =>
        event.passed === undefined ? line : done(line, event.passed),
      );
  }
}

/** The newest tick up to now that is the line's to fire; undefined: none is. */
export function dueTick(line: LineState, now: number): DueTick | undefined {
  if (line.paused === true) return undefined;
  const cron = cronOf(line.cron);
  const tick = newestTick(cron, now);
  if (tick === undefined || tick < line.from) return undefined;
  const { last } = line;
  // One that lies ahead was fired by a clock that was wrong, and says nothing.
  if (last !== undefined && last <= now && tick <= last) return undefined;
  const toldTo = Math.max(line.from - 1, line.toldTo ?? 0);
  return { tick, missed: tick <= toldTo ? 0 : ticksBetween(cron, toldTo, tick) };
}

/** When a line that has nothing to fire now is to be looked at again; undefined: never, as it stands. */
export function nextLook(line: LineState, now: number): number | undefined {
  return line.paused === true ? undefined : nextTick(cronOf(line.cron), Math.max(now, line.from - 1));
}

/** What resuming a line says of the ticks that came while it was paused. */
export function passedTick(line: LineState, now: number): number | undefined {
  const tick = newestTick(cronOf(line.cron), now);
  return tick === undefined || tick < line.from ? undefined : tick;
}

/** A line that the schedule has had before goes on as it was; one that comes back is still paused. */
function set(
  known: Pick<ScheduleState, 'id' | 'lines' | 'gonePaused'>,
  { type: _, at: _at, lines, ...event }: ScheduleSet,
): ScheduleState {
  const paused = new Set(known.gonePaused);
  for (const { id, paused: isPaused } of known.lines) if (isPaused === true) paused.add(id);
  const byId = new Map(known.lines.map((line) => [line.id, line]));
  const next = lines.map(
    (line): LineState =>
      byId.get(line.id) ?? {
        ...line,
        from: event.delivery.storedAt,
        ...(paused.has(line.id) ? { paused: true } : {}),
      },
  );
  for (const { id } of next) paused.delete(id);
  const gonePaused = [...paused].slice(-GONE_PAUSED_MAX);
  return { ...event, id: known.id, lines: next, ...(gonePaused.length === 0 ? {} : { gonePaused }) };
}

function changed(state: ScheduleState, id: string, change: (line: LineState) => LineState): ScheduleState {
  return { ...state, lines: state.lines.map((line) => (line.id === id ? change(line) : line)) };
}

function done(line: LineState, tick: number): LineState {
  return { ...line, last: tick, toldTo: Math.max(tick, line.toldTo ?? 0) };
}

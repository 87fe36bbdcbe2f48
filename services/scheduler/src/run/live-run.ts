/**
 * A run in its owner's memory: its actor, its events, and how far they are committed. State is ahead of what is
 * committed while a commit is under way; `committedState` is what may be shown and stored.
 */
import type { PipelineDefinition, StageDefinition } from '@penstock/pipeline';
import {
  evolve,
  isEnded,
  isSettled,
  newRun,
  planOf,
  RunInvariantError,
  type Plan,
  type RunCommand,
  type RunCreated,
  type RunEvent,
  type RunState,
  type RunId,
  type Sequence,
  sharedNames,
  type Version,
  withNames,
} from '@penstock/run';
import { RunActor, type Decided } from '@penstock/run/machine';
import { DECISION_BYTES_MAX, fitsCommit } from './commit.ts';
import { StageTimes, type WaitSettings } from './stage-times.ts';

/** Of the cause of a quarantine: a message may quote what made it. */
const CAUSE_LENGTH_MAX = 1_000;
/** Of more events, what takes them is little beside what they take. */
const EXACT_EVENTS_MAX = 64;

/** What is committed of a run: all of its events, version 1 first, and the sequence of the last commit with some of them. */
export interface RunHistory {
  readonly events: RunEvent[];
  readonly sequence: Sequence;
  /** How many of them a document of the run holds; absent: all. */
  readonly inDocument?: number | undefined;
}

interface RunBeginning {
  readonly id: RunId;
  readonly definition: PipelineDefinition;
  readonly events: RunEvent[];
  readonly committedVersion: Version;
  readonly committedSequence: Sequence;
  readonly versionInDocument: Version;
  readonly state: RunState;
  readonly settings: WaitSettings;
  readonly standIn?: StandIn | undefined;
  readonly restoreError?: string | undefined;
}

/** Of a run whose events this build cannot fold: the state that stands for the first so many of them. */
interface StandIn {
  readonly count: number;
  readonly state: RunState;
}

export class LiveRun {
  readonly id: RunId;
  /** As its file has it: what stages have added is in the plan alone. */
  readonly definition: PipelineDefinition;
  /** Why the run could not be restored; undefined: it could. */
  readonly restoreError: string | undefined;
  /** What stood in the store of it when it came into this memory; 0: nothing. */
  readonly versionInDocument: Version;
  /** Since when its stages wait, by the boot clock. */
  readonly times: StageTimes;
  /** Since when it goes on, by the boot clock; undefined: it does not yet, or nobody knows. Written by `RunLengths`. */
  beganAt: number | undefined = undefined;
  /** Up to which version its events are in the outbox of hooks, and what they left in caches is known. Written by `HookAnnouncer`, and by `Projector`. */
  announcedVersion: Version;
  cachesVersion: Version = 0;
  #events: RunEvent[];
  #committedVersion: Version;
  #committedSequence: Sequence;
  readonly #settings: WaitSettings;
  readonly #standIn: StandIn | undefined;
  #actor: RunActor;

  private constructor(beginning: RunBeginning) {
    const { id, definition, state, settings } = beginning;
    this.id = id;
    this.definition = definition;
    this.times = new StageTimes(settings);
    this.restoreError = beginning.restoreError;
    this.versionInDocument = beginning.versionInDocument;
    this.announcedVersion = beginning.versionInDocument;
    this.#events = beginning.events;
    this.#committedVersion = beginning.committedVersion;
    this.#committedSequence = beginning.committedSequence;
    this.#settings = settings;
    this.#standIn = beginning.standIn;
    this.#actor = new RunActor({ run: state, settings });
  }

  static create(id: RunId, definition: PipelineDefinition, created: RunCreated, settings: WaitSettings): LiveRun {
    const state = newRun(id, created, planOf(definition));
    return new LiveRun({
      id,
      definition,
      events: [created],
      committedVersion: 0,
      committedSequence: 0,
      versionInDocument: 0,
      state,
      settings,
    });
  }

  /** From committed events. Throws RunInvariantError where they do not make a run. */
  static restore(
    id: RunId,
    definition: PipelineDefinition,
    { events, sequence, inDocument = events.length }: RunHistory,
    settings: WaitSettings,
  ): LiveRun {
    const count = events.length;
    const state = foldRun(id, planOf(definition), events, count);
    return new LiveRun({
      id,
      definition,
      events: withSharedNames(events, state.stages.plan),
      committedVersion: count,
      committedSequence: sequence,
      versionInDocument: inDocument,
      state,
      settings,
    });
  }

  /**
   * A run that cannot be restored, for its text or its events mean nothing to this build: it stands with the stages that
   * its events name, so that its live attempts are known, and waits for its owner to quarantine it, unless it has ended.
   */
  static unrestorable(
    id: RunId,
    { events, sequence, inDocument = events.length }: RunHistory,
    settings: WaitSettings,
    restoreError: string,
  ): LiveRun {
    const [created] = events;
    if (created?.type !== 'run_created') throw new RunInvariantError(id, 'its events do not begin with run_created');
    const committed = {
      id,
      events,
      committedVersion: events.length,
      committedSequence: sequence,
      versionInDocument: inDocument,
      settings,
    };
    const named = standInOf(created.pipelineName, events);
    try {
      const state = foldRun(id, planOf(named), events, events.length);
      return new LiveRun({ ...committed, definition: named, state, restoreError });
    } catch {
      // Its events contradict each other: only its end can be read from them.
    }
    const definition: PipelineDefinition = { name: created.pipelineName, schedule: [], stages: [] };
    const state: RunState = { ...newRun(id, created, planOf(definition)), version: events.length };
    for (const event of events) {
      if (event.type !== 'run_completed' && event.type !== 'run_cancelled' && event.type !== 'run_quarantined')
        continue;
      state.status =
        event.type === 'run_completed' ? event.status : event.type === 'run_cancelled' ? 'CANCELLED' : 'FAILED';
      state.finishedAt = event.at;
    }
    const standIn = { count: events.length, state };
    return new LiveRun({ ...committed, definition, state: copyOf(state), standIn, restoreError });
  }

  /** All events, version 1 first; those beyond `committedVersion` are decided and not yet acknowledged. */
  get events(): readonly RunEvent[] {
    return this.#events;
  }

  get committedVersion(): number {
    return this.#committedVersion;
  }

  /** The sequence of the last acknowledged commit with events of this run. */
  get committedSequence(): number {
    return this.#committedSequence;
  }

  /** All of its stages, as its events and decisions have them by now. */
  get plan(): Plan {
    return this.state.stages.plan;
  }

  get state(): RunState {
    return this.#actor.run;
  }

  get ended(): boolean {
    return isEnded(this.state.status);
  }

  /** The time of its last event: none of a later one is before it, whatever was done to the wall clock. */
  get lastAt(): number {
    return this.#events.at(-1)?.at ?? 0;
  }

  get settled(): boolean {
    return isSettled(this.state);
  }

  get isCommitted(): boolean {
    return this.#committedVersion === this.#events.length;
  }

  /** The events up to this version are stored, the last of them by the commit at this sequence. */
  committed(version: Version, sequence: Sequence): void {
    this.#committedVersion = version;
    this.#committedSequence = sequence;
  }

  /**
   * Tells the machine; its events are added. A machine that throws, or decides what no commit can carry, is rebuilt and
   * quarantined, and no other run notices.
   */
  tell(command: RunCommand): Decided | undefined {
    const before = this.#events.length;
    try {
      const decided = this.#tell(command);
      if (decided !== undefined && !fitsCommit(decided.events))
        throw new RunInvariantError(this.id, `what follows takes more than ${DECISION_BYTES_MAX} bytes`);
      return decided;
    } catch (error) {
      this.#events.length = before;
      const cause = `${command.type}: ${error instanceof Error ? error.message : String(error)}`.slice(
        0,
        CAUSE_LENGTH_MAX,
      );
      this.#actor = new RunActor({
        run: this.#fold(before),
        settings: this.#settings,
      });
      const quarantined = this.#tell({ type: 'quarantine', at: command.at, cause });
      // An attempt that this command ends is gone all the same.
      const gone = 'attempt' in command ? this.#tell(command) : undefined;
      return {
        events: [...(quarantined?.events ?? []), ...(gone?.events ?? [])],
        effects: [...(quarantined?.effects ?? []), ...(gone?.effects ?? [])],
      };
    }
  }

  /** Nothing is about to happen to it: what only deciding needs is let go of. */
  rest(): void {
    this.#actor.rest();
    // An array that has grown has room for as many again, and for sixteen more.
    if (this.#events.length <= EXACT_EVENTS_MAX) this.#events = this.#events.slice();
  }

  /** The state that the committed events make; a copy where decisions are ahead of them. */
  committedState(): RunState {
    return this.isCommitted ? this.state : this.#fold(this.#committedVersion);
  }

  /** What the first so many events make, at least those that it was restored with where they mean nothing here; a copy. */
  stateAt(count: Version): RunState {
    return this.#fold(count);
  }

  #fold(count: number): RunState {
    if (this.#standIn === undefined) return foldRun(this.id, planOf(this.definition), this.#events, count);
    const state = copyOf(this.#standIn.state);
    for (let index = this.#standIn.count; index < count; index++) evolve(state, this.#events[index] as RunEvent);
    return state;
  }

  #tell(command: RunCommand): Decided | undefined {
    const decided = this.#actor.tell(command);
    if (decided !== undefined) this.#events.push(...decided.events);
    return decided;
  }
}

/** Of a stand-in, which has no stages. */
function copyOf(state: RunState): RunState {
  return { ...state, workspaces: { ...state.workspaces } };
}

/**
 * Names as the definition has them: those of a journal or a document are strings of their own, thousands in a large run. The journal
 * has none of those that were added.
 */
function withSharedNames(events: readonly RunEvent[], plan: Plan): RunEvent[] {
  const { indexOf, stages } = plan;
  const shared = (name: string): string => stages[indexOf.get(name) ?? -1]?.definition.name ?? name;
  return events.map((event) => {
    if (event.type === 'stages_added') return withNames(event);
    return 'stages' in event ? { ...event, stages: sharedNames(plan, event.stages.map(shared)) } : event;
  });
}

/** A definition with the stages that the events name, and nothing known of them. */
function standInOf(name: string, events: readonly RunEvent[]): PipelineDefinition {
  const names = new Set(
    events.flatMap((event) =>
      event.type === 'stages_adopted'
        ? event.adopted.map(({ stage }) => stage)
        : 'stages' in event && event.type !== 'stages_added'
          ? event.stages
          : 'stage' in event
            ? [event.stage]
            : [],
    ),
  );
  const stages = [...names].map((stage): StageDefinition => ({
    name: stage,
    after: [],
    runsAfterFailure: false,
    commands: [],
    env: {},
    timeoutMs: 0,
    allowFailure: false,
    workspace: 'shared',
    runsOn: [],
    outputs: [],
    retry: { max: 0, backoff: 'constant', delayMs: 0, on: [] },
  }));
  return { name, schedule: [], stages };
}

/** Folds the first `count` events. Throws RunInvariantError where the first is no `run_created` or one cannot follow. */
export function foldRun(id: RunId, plan: Plan, events: readonly RunEvent[], count: number): RunState {
  const created = events[0];
  if (created?.type !== 'run_created') throw new RunInvariantError(id, 'its events do not begin with run_created');
  const state = newRun(id, created, plan);
  for (let index = 1; index < count; index++) evolve(state, events[index] as RunEvent);
  return state;
}

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
  RunActor,
  RunInvariantError,
  type Decided,
  type Plan,
  type RunCommand,
  type RunCreated,
  type RunEvent,
  type RunSettings,
  type RunState,
} from '@penstock/run';
import { DECISION_BYTES_MAX, fitsCommit } from './commit.ts';

/** Of the cause of a quarantine: a message may quote what made it. */
const CAUSE_LENGTH_MAX = 1_000;

export class LiveRun {
  readonly id: string;
  readonly definition: PipelineDefinition;
  readonly plan: Plan;
  /** All events, version 1 first; those beyond `committedVersion` are decided and not yet acknowledged. */
  readonly events: RunEvent[];
  committedVersion: number;
  /** The sequence of the last acknowledged commit with events of this run. */
  committedSequence = 0;
  /** When the machine wants to be woken; undefined: not at all. */
  wakeAt: number | undefined;
  /** Whether it may go on, as its owner has decided; kept by `Places`. */
  standing: 'none' | 'held' | 'placed' = 'none';
  /** Whether its key's committed count of runs that go on has it; kept by `KeyCounts`. */
  countsAsActive = false;
  /** Why the run could not be restored; undefined: it could. */
  readonly poison: string | undefined;
  readonly #settings: RunSettings;
  /** Of a run whose events this build cannot fold: the state that stands for the first so many of them. */
  readonly #poisoned: { readonly count: number; readonly state: RunState } | undefined;
  #actor: RunActor;

  private constructor(
    id: string,
    definition: PipelineDefinition,
    events: RunEvent[],
    committedVersion: number,
    state: RunState,
    settings: RunSettings,
    poisoned?: { readonly count: number; readonly state: RunState },
    poison?: string,
  ) {
    this.id = id;
    this.definition = definition;
    this.plan = planOf(definition);
    this.events = events;
    this.committedVersion = committedVersion;
    this.#settings = settings;
    this.#poisoned = poisoned;
    this.poison = poison;
    this.#actor = new RunActor({ run: state, definition, settings });
  }

  static create(id: string, definition: PipelineDefinition, created: RunCreated, settings: RunSettings): LiveRun {
    return new LiveRun(id, definition, [created], 0, newRun(id, created, planOf(definition)), settings);
  }

  /** From committed events. Throws RunInvariantError where they do not make a run. */
  static restore(id: string, definition: PipelineDefinition, events: RunEvent[], settings: RunSettings): LiveRun {
    return new LiveRun(
      id,
      definition,
      events,
      events.length,
      foldRun(id, planOf(definition), events, events.length),
      settings,
    );
  }

  /**
   * A run that cannot be restored, for its text or its events mean nothing to this build: it stands with the stages that
   * its events name, so that its live attempts are known, and waits for its owner to quarantine it, unless it has ended.
   */
  static poisoned(id: string, events: RunEvent[], settings: RunSettings, cause: string): LiveRun {
    const [created] = events;
    if (created?.type !== 'run_created') throw new RunInvariantError(id, 'its events do not begin with run_created');
    const named = standInOf(created.pipelineName, events);
    try {
      const state = foldRun(id, planOf(named), events, events.length);
      return new LiveRun(id, named, events, events.length, state, settings, undefined, cause);
    } catch {
      // Its events contradict each other: only its end can be told from them.
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
    return new LiveRun(
      id,
      definition,
      events,
      events.length,
      structuredClone(state),
      settings,
      { count: events.length, state },
      cause,
    );
  }

  get state(): RunState {
    return this.#actor.run;
  }

  get ended(): boolean {
    return isEnded(this.state.status);
  }

  get settled(): boolean {
    return isSettled(this.state);
  }

  get isCommitted(): boolean {
    return this.committedVersion === this.events.length;
  }

  /**
   * Tells the machine; its events are added. A machine that throws, or decides what no commit can carry, is rebuilt and
   * quarantined: poison never spreads.
   */
  tell(command: RunCommand): Decided | undefined {
    const before = this.events.length;
    try {
      const decided = this.#tell(command);
      if (decided !== undefined && !fitsCommit(decided.events))
        throw new RunInvariantError(this.id, `what follows takes more than ${DECISION_BYTES_MAX} bytes`);
      return decided;
    } catch (error) {
      this.events.length = before;
      const cause = `${command.type}: ${error instanceof Error ? error.message : String(error)}`.slice(
        0,
        CAUSE_LENGTH_MAX,
      );
      this.#actor = new RunActor({
        run: this.#fold(this.events.length),
        definition: this.definition,
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

  /** The state that the committed events make; a copy where decisions are ahead of them. */
  committedState(): RunState {
    return this.isCommitted ? this.state : this.#fold(this.committedVersion);
  }

  #fold(count: number): RunState {
    if (this.#poisoned === undefined) return foldRun(this.id, this.plan, this.events, count);
    const state = structuredClone(this.#poisoned.state);
    for (let index = this.#poisoned.count; index < count; index++)
      evolve(state, this.plan, this.events[index] as RunEvent);
    return state;
  }

  #tell(command: RunCommand): Decided | undefined {
    const decided = this.#actor.tell(command);
    if (decided !== undefined) this.events.push(...decided.events);
    return decided;
  }
}

/** A definition with the stages that the events name, and nothing known of them. */
function standInOf(name: string, events: readonly RunEvent[]): PipelineDefinition {
  const names = new Set(
    events.flatMap((event) => (event.type === 'stages_queued' ? event.stages : 'stage' in event ? [event.stage] : [])),
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
export function foldRun(id: string, plan: Plan, events: readonly RunEvent[], count: number): RunState {
  const created = events[0];
  if (created?.type !== 'run_created') throw new RunInvariantError(id, 'its events do not begin with run_created');
  const state = newRun(id, created, plan);
  for (let index = 1; index < count; index++) evolve(state, plan, events[index] as RunEvent);
  return state;
}

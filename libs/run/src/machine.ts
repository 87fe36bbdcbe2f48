/**
 * The machine of a run: one flat XState machine, an actor per run, its stages in the context. It says which command is
 * heard in which phase; what follows from a command is decided by `Decision`, and leaves the machine as events and
 * effects in `context.decided`. The machine does nothing itself: the shell commits the events and carries out the effects.
 *
 * Phases: `resuming` (looks at the state and goes on) -> `held` | `open` -> `ending` (ended, attempts still to be
 * confirmed gone) -> `settled`. A run restored from its events takes the same way in.
 */
import { createActor, setup, type Actor } from 'xstate';
import type { RunCommand } from './commands.ts';
import { Decision } from './decide.ts';
import type { RunEffect } from './effects.ts';
import type { LogEnd, RunEvent } from './events.ts';
import { isEnded } from './evolve.ts';
import { awaitsRunner, isOpenGate } from './gates.ts';
import type { Plan } from './plan.ts';
import { isAdopting } from './adoptions.ts';
import type { StagePicture } from './stages.ts';
import type { RunState } from './state.ts';
import type { RunSettings } from './timers.ts';

export interface RunContext {
  readonly run: RunState;
  readonly settings: RunSettings;
  /** Of the last command that was heard; compare `decided.command` to know whether it was the one just sent. */
  decided: Decision | undefined;
}

export interface RunInput {
  readonly run: RunState;
  readonly settings: RunSettings;
}

/** Of a command that names an attempt: whether that attempt lives. */
const namesLiveAttempt = ({ context, event }: { context: RunContext; event: RunCommand }): boolean => {
  if (!('attempt' in event)) return false;
  return (
    context.run.stages.get(context.run.stages.plan.indexOf.get(event.stage) ?? -1)?.live?.attempt === event.attempt
  );
};

const stageWaits = ({ context, event }: { context: RunContext; event: RunCommand }): boolean =>
  event.type === 'grant' && stageOf(context, event.stage, awaitsRunner);

const gateWaits = ({ context, event }: { context: RunContext; event: RunCommand }): boolean =>
  event.type === 'decide-gate' && stageOf(context, event.stage, isOpenGate);

function stageOf({ run }: RunContext, name: string, is: (stage: StagePicture) => boolean): boolean {
  const stage = run.stages.get(run.stages.plan.indexOf.get(name) ?? -1);
  return stage !== undefined && is(stage);
}

/** In place, as `evolve` writes the run: an `assign` makes the machine's whole snapshot anew, which takes as long as most decisions. */
const decide =
  (apply: (decision: Decision, command: RunCommand) => void) =>
  ({ context, event }: { context: RunContext; event: RunCommand }): void => {
    const decision = new Decision(context.run, context.settings, event);
    apply(decision, event);
    context.decided = decision;
  };

/** The handler of one type of command; XState routes by type, so another type never arrives. */
const on = <Type extends RunCommand['type']>(
  type: Type,
  apply: (decision: Decision, command: Extract<RunCommand, { type: Type }>) => void,
) =>
  decide((decision, command) => {
    if (command.type === type) apply(decision, command as Extract<RunCommand, { type: Type }>);
  });

/** What was never started has written nothing. */
function logEndOf(command: RunCommand): LogEnd {
  if (command.type === 'lose') return { logSequence: command.logSequence };
  return { logBytes: command.type === 'result' ? command.logBytes : 0 };
}

export const runMachine = setup({
  types: { context: {} as RunContext, events: {} as RunCommand, input: {} as RunInput },
  guards: {
    namesLiveAttempt,
    stageWaits,
    gateWaits,
    hasOpenGates: ({ context: { run } }) =>
      run.stages.plan.gates.some((index) => isOpenGate(run.stages.get(index) as StagePicture)),
    isAdopting: ({ context }) => isAdopting(context.run),
    isHeld: ({ context }) => context.run.held,
    awaitsApproval: ({ context }) => context.run.awaitsApproval === true,
    awaitsTurn: ({ context }) => context.run.awaitsApproval !== true,
    hasEnded: ({ context }) => isEnded(context.run.status),
    hasSettled: ({ context }) => isEnded(context.run.status) && context.run.liveAttempts === 0,
    holdsWorkspace: ({ context, event }) =>
      event.type === 'lose-workspace' && Object.values(context.run.workspaces).includes(event.runner),
  },
  actions: {
    start: on('start', (decision, { at, held, ended }) =>
      ended === undefined ? decision.start(at, held) : decision.endAtOnce(at, ended),
    ),
    approve: on('approve', (decision, command) => decision.approve(command)),
    giveUp: on('give-up', (decision, { at }) => decision.giveUp(at)),
    adopt: on('adopt', (decision, command) => decision.adopt(command)),
    loseParent: on('lose-parent', (decision, { at }) => decision.loseParent(at)),
    admit: on('admit', (decision, { at }) => decision.admit(at)),
    grant: on('grant', (decision, command) => decision.grant(command)),
    returnGrant: on('return-grant', (decision, { at, stage }) => decision.returnGrant(at, stage)),
    takeResult: on('result', (decision, command) => decision.result(command)),
    lose: on('lose', (decision, { at, stage, logSequence }) => decision.lose(at, stage, { logSequence })),
    wake: on('wake', (decision, { at, due }) => decision.wake(at, due)),
    loseWorkspace: on('lose-workspace', (decision, { at, runner, labelSets }) =>
      decision.loseWorkspace(at, runner, labelSets),
    ),
    decideGate: on('decide-gate', (decision, command) => decision.decideGate(command)),
    cancel: on('cancel', (decision, { at }) => decision.cancel(at)),
    quarantine: on('quarantine', (decision, { at, cause }) => decision.quarantine(at, cause)),
    confirmGone: decide((decision, command) => {
      if ('attempt' in command) decision.confirmGone(command.at, command.stage, command.attempt, logEndOf(command));
    }),
  },
}).createMachine({
  id: 'run',
  context: ({ input }) => ({
    run: input.run,
    settings: input.settings,
    decided: undefined,
  }),
  initial: 'resuming',
  states: {
    resuming: {
      always: [{ guard: 'hasEnded', target: 'ending' }, { guard: 'isHeld', target: 'held' }, { target: 'open' }],
    },
    held: {
      always: { guard: 'hasEnded', target: 'ending' },
      on: {
        admit: { guard: 'awaitsTurn', target: 'open', actions: 'admit' },
        adopt: { guard: 'isAdopting', actions: 'adopt' },
        'lose-parent': { guard: 'isAdopting', actions: 'loseParent' },
        approve: { guard: 'awaitsApproval', target: 'open', actions: 'approve' },
        'give-up': { guard: 'awaitsApproval', actions: 'giveUp' },
        // Held again once its gates were all that was open: those go on, and what it has left on a runner may go.
        'decide-gate': { guard: 'gateWaits', actions: 'decideGate' },
        wake: { guard: 'hasOpenGates', actions: 'wake' },
        'lose-workspace': { guard: 'holdsWorkspace', actions: 'loseWorkspace' },
        cancel: { actions: 'cancel' },
        quarantine: { actions: 'quarantine' },
      },
    },
    open: {
      always: [
        { guard: 'hasEnded', target: 'ending' },
        { guard: 'isHeld', target: 'held' },
      ],
      on: {
        start: { actions: 'start' },
        adopt: { guard: 'isAdopting', actions: 'adopt' },
        'lose-parent': { guard: 'isAdopting', actions: 'loseParent' },
        grant: { guard: 'stageWaits', actions: 'grant' },
        'return-grant': { guard: 'namesLiveAttempt', actions: 'returnGrant' },
        result: { guard: 'namesLiveAttempt', actions: 'takeResult' },
        lose: { guard: 'namesLiveAttempt', actions: 'lose' },
        wake: { actions: 'wake' },
        'lose-workspace': { guard: 'holdsWorkspace', actions: 'loseWorkspace' },
        'decide-gate': { guard: 'gateWaits', actions: 'decideGate' },
        cancel: { actions: 'cancel' },
        quarantine: { actions: 'quarantine' },
      },
    },
    ending: {
      always: { guard: 'hasSettled', target: 'settled' },
      on: {
        'return-grant': { guard: 'namesLiveAttempt', actions: 'confirmGone' },
        result: { guard: 'namesLiveAttempt', actions: 'confirmGone' },
        lose: { guard: 'namesLiveAttempt', actions: 'confirmGone' },
      },
    },
    settled: { type: 'final' },
  },
});

/** What a command led to. `undefined` from `tell`: it did not apply, nothing changed. */
export interface Decided {
  readonly events: readonly RunEvent[];
  readonly effects: readonly RunEffect[];
}

/**
 * A run's machine, running. `tell` throws what a decision threw: the state may then be half written, so the caller
 * rebuilds it from the events or throws it away (a poisoned run is quarantined by its owner).
 *
 * The phase follows from the state alone (`resuming`), so a run that waits for long needs no XState actor, which takes some
 * times what its state takes: `rest` lets go of it, and the next command begins another.
 */
export class RunActor {
  readonly run: RunState;
  readonly #settings: RunSettings;
  #actor: Actor<typeof runMachine> | undefined;
  #failure: unknown;

  constructor({ run, settings }: RunInput) {
    this.run = run;
    this.#settings = settings;
  }

  /** Grows where a stage adds others. */
  get plan(): Plan {
    return this.run.stages.plan;
  }

  tell(command: RunCommand): Decided | undefined {
    const actor = (this.#actor ??= this.#begin());
    // Nothing applies to a settled run; XState would write about it to stderr.
    if (actor.getSnapshot().status === 'done') return undefined;
    actor.send(command);
    if (this.#failure !== undefined) throw this.#failure;
    const { decided } = actor.getSnapshot().context;
    return decided?.command === command ? decided : undefined;
  }

  rest(): void {
    if (this.#failure === undefined) this.#actor = undefined;
  }

  #begin(): Actor<typeof runMachine> {
    const input = { run: this.run, settings: this.#settings };
    const actor = createActor(runMachine, { input });
    actor.subscribe({
      error: (error) => {
        this.#failure = error;
      },
    });
    return actor.start();
  }
}

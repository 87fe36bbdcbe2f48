/**
 * What is paused is not granted, and a drained runner is given nothing but what has its workspace there (P35). By the log alone: an
 * event says when it was decided, so this is looked at where clocks are right, and a moment is left in which the owner cannot know yet.
 */
import type { RunEvent } from '@penstock/run';
import { CONTROLS_HEARD_WITHIN_MS } from '@penstock/bus';
import type { Administrators, HeldUp } from '../nodes/administrators.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

/** How long a message may be under way. */
const FAST_MS = 1_000;
const SLOW_MS = 16_000;
/** An event says when it was decided in whole milliseconds; what was let go within the same one may have been granted after that. */
const EVENT_CLOCK_MS = 1;

type Started = Extract<RunEvent, { type: 'stage_started' }>;

export class ControlRules {
  readonly #world: World;
  readonly #administrators: Pick<Administrators, 'heldUp'>;
  readonly #looks: boolean;
  readonly #knownWithinMs: number;

  constructor(world: World, administrators: Pick<Administrators, 'heldUp'>) {
    const { pauses, clockSkewMs, faults, slow, callbackThrows } = world.profile;
    this.#world = world;
    this.#administrators = administrators;
    this.#looks = pauses > 0 && clockSkewMs === 0 && faults.clockStep === 0;
    this.#knownWithinMs = CONTROLS_HEARD_WITHIN_MS + (slow > 0 || callbackThrows > 0 ? SLOW_MS : FAST_MS);
  }

  /** Before the event is applied to the run's state. */
  happens(run: RunTruth, event: RunEvent): void {
    if (!this.#looks || event.type !== 'stage_started') return;
    const world = this.#world;
    const decidedAt = event.at - (world.wallClock() - world.now);
    for (const heldUp of this.#administrators.heldUp) {
      if (heldUp.from > decidedAt || decidedAt + EVENT_CLOCK_MS > heldUp.to || !isAbout(heldUp, run, event)) continue;
      world.mark('granted just before it was known to be paused');
      world.check(
        decidedAt - heldUp.from <= this.#knownWithinMs,
        'P35',
        `${run.id.slice(-4)}/${event.stage} is granted ${Math.round(decidedAt - heldUp.from)} ms after ${JSON.stringify(heldUp.target)} was paused`,
      );
    }
  }
}

function isAbout({ target }: HeldUp, { state }: RunTruth, { stage, runner }: Started): boolean {
  const planned = state.stages.plan.stages[state.stages.plan.indexOf.get(stage) ?? -1];
  const wanted = state.origin.trusted === false ? planned?.wanted.untrusted : planned?.wanted.trusted;
  switch (target.kind) {
    case 'all':
      return true;
    case 'key':
      return state.key === target.key;
    case 'label':
      return wanted?.labels.includes(target.label) === true;
    case 'runner':
      return (
        runner === target.runner &&
        !(planned?.definition.workspace === 'shared' && state.workspaces[planned.labelSet] === runner)
      );
  }
}

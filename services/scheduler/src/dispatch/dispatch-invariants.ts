/** What holds between two steps of the dispatch: of all its queues, or of some of them at a time. Owns where the samples stand. */
import { invariant } from '../run/invariant.ts';
import type { KeyTurns } from './key-turns.ts';
import type { Lane } from './lane.ts';
import { classId } from './place.ts';
import { lanesOf, type ClassLane, type ReadyClass } from './ready-class.ts';
import type { ReadyGroups } from './ready-groups.ts';
import { assertCredits, type Sessions } from './sessions.ts';

/** Of so many stages, queues and sessions all invariants are looked at in a few milliseconds. */
const SAMPLED = 5_000;

export interface DispatchInvariantsHost {
  readonly classes: ReadonlyMap<string, ReadyClass>;
  readonly sessions: Pick<Sessions, 'values' | 'size'>;
  readonly groups: Pick<ReadyGroups, 'assertInvariants'>;
  readonly turns: Pick<KeyTurns, 'passOf'>;
  /** The stages in the queues, as they are counted. */
  readonly waiting: () => number;
}

export class DispatchInvariants {
  readonly #host: DispatchInvariantsHost;
  #sampled: Iterator<ClassLane> | undefined;

  constructor(host: DispatchInvariantsHost) {
    this.#host = host;
  }

  /** Throws InvariantBroken. */
  assertAll(): void {
    const { classes, sessions, groups } = this.#host;
    const counted = this.#host.waiting();
    let waiting = 0;
    for (const { ready, lane } of lanesOf(classes)) {
      waiting += lane.count;
      this.#assertLane(ready, lane);
    }
    const facts = (): Record<string, unknown> => ({ counted, waiting });
    invariant('DISPATCH-4', waiting === counted, 'the stages in the queues are not those counted', facts);
    groups.assertInvariants();
    for (const session of sessions.values()) assertCredits(session);
  }

  /** The same of some of the queues, where all of them are more than one turn is for. */
  assertSample(): void {
    const { classes, sessions, waiting } = this.#host;
    if (waiting() + classes.size + sessions.size <= SAMPLED) {
      this.assertAll();
      return;
    }
    for (let left = SAMPLED; left > 0;) {
      this.#sampled ??= lanesOf(classes);
      const { value, done } = this.#sampled.next();
      if (done === true) {
        this.#sampled = undefined;
        return;
      }
      left -= 1 + this.#assertLane(value.ready, value.lane);
    }
  }

  /** Answers how many places of the lane were looked at. */
  #assertLane(ready: ReadyClass, lane: Lane): number {
    const { key, priority, pass, count } = lane;
    const keyPass = this.#host.turns.passOf(key);
    const facts = (): Record<string, unknown> => ({ class: ready.id, key, priority, pass, keyPass, count });
    invariant('DISPATCH-1', pass <= keyPass, 'a lane stands behind the turn of its key', facts);
    let [left, looks] = [0, 0];
    for (const { stages, taken, isPast } of lane.entries()) {
      looks += 1;
      invariant('DISPATCH-4', (stages === undefined) === isPast, 'a stage was taken twice, or never', facts);
      if (stages === undefined) continue;
      left += stages.count - taken;
      const isOfKey = stages.key === key && stages.tenant === lane.tenant && stages.priority === priority;
      const fits = isOfKey && ready.id === classId(stages, ready.runner);
      invariant('DISPATCH-2', fits, "a stage waits in another's queue", facts);
    }
    invariant('DISPATCH-4', left === count, 'the stages in a queue are not those counted', facts);
    return looks;
  }
}

/**
 * The stages of one key and priority in a class, first come first served. Owns their order, and where in it the next one stands;
 * how many it has given or let go of is told to the caller, who counts them.
 */
import type { ReadyStages } from './ready-stage.ts';

/** A lane is cleared up when it has doubled, so that what stands in it is looked at about twice; below this it is not worth it. */
const ROOM_MIN = 256;

export class Lane {
  readonly key: string;
  /** Whose the key is. */
  readonly tenant: string | undefined;
  readonly priority: number;
  /** The key's pass when the lane was made, or when its turn was last looked at. */
  pass: number;
  /** What is before the head has been taken, and holds nothing of its run any more. */
  readonly #waiting: (ReadyStages | undefined)[] = [];
  #head = 0;
  /** How many stages of the head have been taken. */
  #taken = 0;
  #count = 0;
  /** How long `#waiting` may become before what waits no more is taken out of its middle. */
  #roomFor = ROOM_MIN;

  constructor({ key, tenant, priority }: Pick<ReadyStages, 'key' | 'tenant' | 'priority'>, pass: number) {
    this.key = key;
    this.tenant = tenant;
    this.priority = priority;
    this.pass = pass;
  }

  /** Stages; those that wait no more are counted until they are met. */
  get count(): number {
    return this.#count;
  }

  /** How many slots the key may have while others wait, as the first stage says. */
  get keySlots(): number | undefined {
    return this.#waiting[this.#head]?.keySlots;
  }

  /** Since when the first stage waits, milliseconds since 1970. */
  get since(): number | undefined {
    return this.#waiting[this.#head]?.since(this.#taken);
  }

  /** Answers how many were let go of for it. */
  push(stages: ReadyStages): number {
    const dropped = this.#waiting.length >= this.#roomFor ? this.clearUp() : 0;
    this.#waiting.push(stages);
    this.#count += stages.count;
    return dropped;
  }

  /** Lets go of the stages at the front that wait no more; answers how many. */
  dropIdle(): number {
    const before = this.#count;
    for (let stages = this.#waiting[this.#head]; stages !== undefined; stages = this.#waiting[this.#head]) {
      if (stages.waits(this.#taken)) break;
      this.#moveOn(stages);
    }
    return before - this.#count;
  }

  /** The first stage, taken out: the one at this index of its like. */
  take(): { readonly stages: ReadyStages; readonly index: number } | undefined {
    const stages = this.#waiting[this.#head];
    if (stages === undefined) return undefined;
    const index = this.#taken;
    this.#moveOn(stages);
    return { stages, index };
  }

  /** Takes out what is left of those of which one was taken last. */
  takeRest(of: ReadyStages): number {
    const before = this.#count;
    while (this.#waiting[this.#head] === of && this.#taken > 0) this.#moveOn(of);
    return before - this.#count;
  }

  /** What waits here, in its order, each from its first that is not taken. */
  *waiting(): Iterable<{ readonly stages: ReadyStages; readonly from: number }> {
    for (let index = this.#head; index < this.#waiting.length; index++) {
      const stages = this.#waiting[index];
      if (stages !== undefined) yield { stages, from: index === this.#head ? this.#taken : 0 };
    }
  }

  /** The same without what is taken of the first. */
  *left(): Iterable<ReadyStages> {
    for (const { stages, from } of this.waiting()) yield from === 0 ? stages : stages.rest(from);
  }

  /** What stands here, each with how many of it are taken; before the head there is nothing. */
  *entries(): Iterable<{ readonly stages: ReadyStages | undefined; readonly taken: number; readonly isPast: boolean }> {
    for (const [index, stages] of this.#waiting.entries())
      yield { stages, taken: index === this.#head ? this.#taken : 0, isPast: index < this.#head };
  }

  #moveOn({ count }: ReadyStages): void {
    this.#count -= 1;
    this.#taken += 1;
    if (this.#taken < count) return;
    this.#taken = 0;
    this.#waiting[this.#head] = undefined;
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
  }

  /**
   * Lets go of what waits no more, wherever it stands; answers how many. Stages that wait for long hold back those behind them, which may
   * be over since; each holds a whole run in memory.
   */
  clearUp(): number {
    const before = this.#count;
    this.#keep(waitsFrom);
    return before - this.#count;
  }

  /** Takes out those of which `isOut` says so, wherever they stand; each from its first that is not taken. */
  takeOut(isOut: (stages: ReadyStages) => boolean): ReadyStages[] {
    const out: ReadyStages[] = [];
    this.#keep((stages, taken) => {
      if (!isOut(stages)) return true;
      out.push(taken === 0 ? stages : stages.rest(taken));
      return false;
    });
    return out;
  }

  #keep(keeps: (stages: ReadyStages, taken: number) => boolean): void {
    const left: ReadyStages[] = [];
    for (const [offset, stages] of this.#waiting.slice(this.#head).entries()) {
      if (stages === undefined) continue;
      const taken = offset === 0 ? this.#taken : 0;
      if (keeps(stages, taken)) left.push(stages);
      else {
        this.#count -= stages.count - taken;
        if (offset === 0) this.#taken = 0;
      }
    }
    // Not spread over a call: hundreds of thousands are more than a stack holds.
    for (const [index, stages] of left.entries()) this.#waiting[index] = stages;
    this.#waiting.length = left.length;
    this.#head = 0;
    this.#roomFor = Math.max(ROOM_MIN, 2 * left.length);
  }
}

export function comesBefore(a: Pick<Lane, 'priority' | 'pass'>, b: Pick<Lane, 'priority' | 'pass'>): boolean {
  return a.priority === b.priority ? a.pass < b.pass : a.priority > b.priority;
}

/** A lane beside others that a session could take from. */
export interface Rival {
  readonly lane: Lane;
  readonly priority: number;
  readonly pass: number;
  /** To one runner. */
  readonly isBound: boolean;
}

/** Of those in turn at once, what is bound to its runner goes first, as its run has begun, and then what has waited for longest. */
export function goesBefore(a: Rival, b: Rival): boolean {
  if (a.priority !== b.priority || a.pass !== b.pass) return comesBefore(a, b);
  if (a.isBound !== b.isBound) return a.isBound;
  return (a.lane.since ?? 0) < (b.lane.since ?? 0);
}

function waitsFrom(stages: ReadyStages, from: number): boolean {
  for (let index = from; index < stages.count; index++) if (stages.waits(index)) return true;
  return false;
}

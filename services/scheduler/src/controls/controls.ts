/**
 * What an administrator has paused or drained (P35), as this scheduler knows it. It owns the picture that its watch paints, and
 * says of each stage whether it may be granted.
 *
 *  CONTROLS-1 Nothing is granted before all controls have been read, nor `CONTROLS_HEARD_WITHIN_MS` after their watch was last heard,
 *     by the boot clock: what was paused meanwhile would be granted by who cannot know.
 *  CONTROLS-2 What waits stays where it waits: the time in which it was held up does not count as waiting for a runner, and what was
 *     held up begins to wait anew when it is let go, also for an owner that takes it over later.
 *  CONTROLS-3 A drained runner gets stages of those runs alone whose workspace it has.
 */
import { CONTROLS_HEARD_WITHIN_MS, type Control, type LeaseEvent, type LeaseWatch } from '@penstock/bus';

/** Of the stages that it is asked about. */
interface Held {
  readonly key: string;
  readonly labels: readonly string[];
}

export interface ControlsTime {
  wallNow(): number;
  bootNow(): number;
}

export type ControlsWatch = Pick<LeaseWatch, 'ready' | 'heardAt' | 'stop'>;

/** Nothing is ever paused. */
export const NO_CONTROLS = {
  areKnown: true,
  isAllPaused: false,
  pauseOf: () => undefined,
  isDrained: () => false,
  drained: [],
} satisfies Partial<Record<keyof Controls, unknown>>;

export class Controls {
  readonly #time: ControlsTime;
  #watch: Pick<ControlsWatch, 'heardAt'> | undefined;
  #isRead = false;
  readonly #known = new Map<string, Control>();
  #all: Control | undefined;
  #keys = new Map<string, Control>();
  #labels = new Map<string, Control>();
  #runners = new Map<string, Control>();
  /** Those that are over, of what may have waited for them. */
  #over: readonly Control[] = [];

  constructor(time: ControlsTime) {
    this.#time = time;
  }

  /** Resolves when all that stands has been taken. */
  async follow(watch: ControlsWatch): Promise<void> {
    this.#watch = watch;
    await watch.ready;
    this.#isRead = true;
  }

  take(event: LeaseEvent<Control>): void {
    if (event.kind === 'put') this.#known.set(event.key, event.value);
    else this.#known.delete(event.key);
    this.#sort();
  }

  /** CONTROLS-1. */
  get areKnown(): boolean {
    const heardAt = this.#watch?.heardAt ?? Number.NEGATIVE_INFINITY;
    return this.#isRead && this.#time.bootNow() - heardAt < CONTROLS_HEARD_WITHIN_MS;
  }

  /** Nothing at all is to be granted. */
  get isAllPaused(): boolean {
    return this.#all !== undefined;
  }

  /** What holds up stages like these; undefined: nothing does. */
  pauseOf({ key, labels }: Held): Control | undefined {
    if (this.#all !== undefined) return this.#all;
    const ofKey = this.#keys.get(key);
    if (ofKey !== undefined || this.#labels.size === 0) return ofKey;
    for (const label of labels) {
      const ofLabel = this.#labels.get(label);
      if (ofLabel !== undefined) return ofLabel;
    }
    return undefined;
  }

  /** CONTROLS-3. */
  isDrained(runner: string): boolean {
    return this.#runners.size > 0 && this.#runners.has(runner);
  }

  get drained(): readonly string[] {
    return [...this.#runners.keys()];
  }

  /** CONTROLS-2: by the boot clock, since when stages like these wait at the earliest; undefined: they were not held up. */
  heldUntil(held: Held): number | undefined {
    if (this.#known.size === 0) return undefined;
    const boot = this.#time.bootNow();
    if (this.pauseOf(held) !== undefined) return boot;
    const wall = this.#time.wallNow();
    let until: number | undefined;
    for (const { target, resumedAt = 0 } of this.#over) {
      const isAbout =
        target.kind === 'all' ||
        (target.kind === 'key' && target.key === held.key) ||
        (target.kind === 'label' && held.labels.includes(target.label));
      if (isAbout) until = Math.max(until ?? Number.NEGATIVE_INFINITY, boot - Math.max(0, wall - resumedAt));
    }
    return until;
  }

  #sort(): void {
    this.#all = undefined;
    this.#keys = new Map();
    this.#labels = new Map();
    this.#runners = new Map();
    const over: Control[] = [];
    for (const control of this.#known.values()) {
      const { target } = control;
      if (control.resumedAt !== undefined) over.push(control);
      else if (target.kind === 'all') this.#all = control;
      else if (target.kind === 'key') this.#keys.set(target.key, control);
      else if (target.kind === 'label') this.#labels.set(target.label, control);
      else if (target.kind === 'runner') this.#runners.set(target.runner, control);
    }
    this.#over = over;
  }
}

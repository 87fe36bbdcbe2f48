/**
 * A machine's process: it handles one thing at a time, and can crash, freeze and be cut off from broker and store. What
 * was planned or sent for an earlier life of it comes to nothing; what arrives while it is frozen waits.
 */
import type { Timeline } from './timeline.ts';

export class SimNode {
  readonly name: string;
  alive = true;
  linked = true;
  /** Since when it is cut off; meaningful while it is. */
  cutAt = 0;
  frozen = false;
  /** Counts starts: an answer to an earlier life is nobody's. */
  life = 1;
  /** Called after each turn that it has had. */
  handled: () => void = () => {};
  readonly #timeline: Timeline;
  #waiting: { readonly life: number; readonly task: () => void }[] = [];

  constructor(name: string, timeline: Timeline) {
    this.name = name;
    this.#timeline = timeline;
  }

  /** Something happens to the process: now, when it wakes, or never. */
  handle(life: number, task: () => void): void {
    if (!this.alive || life !== this.life) return;
    if (this.frozen) {
      this.#waiting.push({ life, task });
      return;
    }
    task();
    this.handled();
  }

  /** A timer of the process. */
  after(delayMs: number, task: () => void): void {
    const { life } = this;
    this.#timeline.after(delayMs, () => this.handle(life, task));
  }

  crash(): void {
    this.alive = false;
    this.frozen = false;
    this.#waiting = [];
  }

  revive(): void {
    this.alive = true;
    this.life += 1;
  }

  wake(): void {
    this.frozen = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    // One by one, as the event loop of a process that was stopped would take them.
    for (const { life, task } of waiting) this.#timeline.after(0, () => this.handle(life, task));
  }
}

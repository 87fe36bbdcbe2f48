/**
 * Shares the event loop between operations that are long. Whoever has used a slice asks for the next one; one is granted a
 * turn of the loop, to the callers one after the other, so that everything else waits for one slice at most, however many
 * operations are long, and one caller's many operations are one to the others.
 */

/** Long enough that the turns between slices cost little, and far below what anybody notices. */
export const SLICE_MS = 8;

export class LoopShare {
  /** By caller, in the order in which they are next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isGranting = false;

  /** Resolves when the caller's next slice begins. */
  turn(caller: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(caller);
      if (waiting === undefined) this.#waiting.set(caller, [resolve]);
      else waiting.push(resolve);
      if (this.#isGranting) return;
      this.#isGranting = true;
      setImmediate(() => this.#grant());
    });
  }

  #grant(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isGranting = false;
      return;
    }
    const [caller, waiting] = next;
    this.#waiting.delete(caller);
    const begin = waiting.shift();
    if (waiting.length > 0) this.#waiting.set(caller, waiting);
    begin?.();
    setImmediate(() => this.#grant());
  }
}

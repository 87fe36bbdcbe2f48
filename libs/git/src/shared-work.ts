/** Work that several callers wait for, given up when all of them have left. */
import { unlessAborted } from '@penstock/async';

interface Shared {
  readonly done: Promise<void>;
  readonly abort: AbortController;
  callers: number;
}

/** Work by name: who asks while it is under way joins it, and it is given up when all of them have left. */
export class SharedWork {
  readonly #underWay = new Map<string, Shared>();

  /** @throws as `begin`; the signal's reason */
  async join(name: string, signal: AbortSignal, begin: (signal: AbortSignal) => Promise<void>): Promise<void> {
    signal.throwIfAborted();
    const shared = this.#underWay.get(name) ?? this.#begin(name, begin);
    shared.callers += 1;
    try {
      await unlessAborted(shared.done, signal);
    } finally {
      shared.callers -= 1;
      if (shared.callers === 0) {
        // Nobody joins what is being given up.
        this.#forget(name, shared);
        shared.abort.abort(signal.reason);
      }
    }
  }

  #begin(name: string, begin: (signal: AbortSignal) => Promise<void>): Shared {
    const abort = new AbortController();
    const shared: Shared = { done: begin(abort.signal), abort, callers: 0 };
    this.#underWay.set(name, shared);
    const over = (): void => this.#forget(name, shared);
    shared.done.then(over, over);
    return shared;
  }

  #forget(name: string, shared: Shared): void {
    if (this.#underWay.get(name) === shared) this.#underWay.delete(name);
  }
}

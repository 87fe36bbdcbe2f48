/** Waiting that can be given up, alone or by all who share what is waited for. */

/** What cannot be interrupted is left behind. @throws the signal's reason */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

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

/** One at a time, in the order of asking. */
export class FairLock {
  #tail: Promise<void> = Promise.resolve();

  /** @throws the signal's reason, where the turn has not come by then */
  async with<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#tail;
    const { promise, resolve } = Promise.withResolvers<void>();
    // Whoever gives up waiting leaves the order as it is.
    this.#tail = before.then(() => promise);
    try {
      await unlessAborted(before, signal);
      return await work();
    } finally {
      resolve();
    }
  }
}

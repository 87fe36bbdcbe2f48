/**
 * Waiting for work no longer than a time, or than a signal allows. What cannot be interrupted is left behind: it goes on, and
 * nobody hears of its end, also not of its failure. Timers and listeners go with the wait.
 */

/** Settles as `work` does, or after `ms`, or when `signal` aborts, as `late` says: with its value, or with what it throws. */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L, signal?: AbortSignal): Promise<T | L> {
  const over = Promise.withResolvers<typeof LATE>();
  const giveUp = (): void => over.resolve(LATE);
  const timer = setTimeout(giveUp, ms);
  signal?.addEventListener('abort', giveUp, { once: true });
  if (signal?.aborted === true) giveUp();
  try {
    const first = await Promise.race([work, over.promise]);
    return first === LATE ? late() : first;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}

const LATE = Symbol('late');

/** Settles as `work` does; throws the signal's reason where that aborts first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  // Nobody hears any more how it ends, which would end the process where it fails.
  if (signal.aborted) work.catch(() => {});
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

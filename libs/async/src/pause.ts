/** Waiting for a time, given up when a signal aborts. The timer and the listener go with the wait. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Throws the signal's reason where it aborts first. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** Ends at once where the signal aborts, without an error: for loops that look at the signal themselves. */
export async function pauseOrAbort(ms: number, signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await sleep(ms, undefined, { signal }).catch(() => {});
}

import { setTimeout as sleep } from 'node:timers/promises';

/** The first pause is short because most troubles are a broker that restarts in 100 ms; the last one bounds how late we notice that it is back. */
export const BACKOFF_MS_MIN = 25;
export const BACKOFF_MS_MAX = 1_000;

/** Milliseconds before try `attempt` (from 1) is repeated: doubles up to `maxMs`, the upper half of it random. */
export function backoffMs(attempt: number, maxMs: number = BACKOFF_MS_MAX): number {
  const ceiling = Math.min(maxMs, BACKOFF_MS_MIN * 2 ** Math.min(attempt - 1, 16));
  return ceiling * (0.5 + Math.random() / 2);
}

/** Throws the signal's reason when it aborts first. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

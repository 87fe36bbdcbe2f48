/**
 * Clocks and timers, as a part of a process needs them that the simulation drives as it is: production's are the machine's, the
 * simulation has virtual ones. A task and a continuation of a pause each have a turn of their own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { bootMs } from './boot-clock.ts';

export interface Time {
  /** The wall clock, milliseconds since 1970: for what is shown and journaled. It may be set at any moment. */
  wallNow(): number;
  /** The boot clock: everything that is waited for or counted in memory goes by it. Fractions of milliseconds, never back. */
  bootNow(): number;
  /** Calls back once; what it answers calls that off. */
  after(milliseconds: number, task: () => void): () => void;
  /** Ends early, without an error, when the signal aborts. */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Gives others a turn. */
  turn(): Promise<void>;
}

export const machineTime: Time = {
  wallNow: () => Date.now(),
  bootNow: bootMs,
  after: (milliseconds, task) => {
    const timer = setTimeout(task, milliseconds);
    return () => clearTimeout(timer);
  },
  pause: async (milliseconds, signal) => {
    if (signal?.aborted !== true)
      await sleep(milliseconds, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  },
  turn: () =>
    new Promise((resolve) => {
      setImmediate(resolve);
    }),
};

/** Aborts so long from now. `end` is to be called when nothing waits for it any more. */
export function deadlineIn(time: Time, milliseconds: number): { readonly signal: AbortSignal; end(): void } {
  const over = new AbortController();
  return { signal: over.signal, end: time.after(milliseconds, () => over.abort()) };
}

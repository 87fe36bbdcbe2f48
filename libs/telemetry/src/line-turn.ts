/**
 * Which thread is in the middle of a line, on what all threads of a process write to: one word of memory, which a thread has from the
 * one that started it.
 */
import { getEnvironmentData, setEnvironmentData, threadId, type Worker } from 'node:worker_threads';

const NAME = 'penstock.line-turn';
const NOBODY = 0;

const word = new Int32Array(sharedMemory());
const own = idOf(threadId);

// One that is ended in the middle of a line would keep it for ever.
process.on('worker', (thread: Worker) => {
  const id = idOf(thread.threadId);
  thread.once('exit', () => void Atomics.compareExchange(word, 0, id, NOBODY));
});

/** False: another thread has it, and has not left it within `waitMs`. */
export function takeLineTurn(waitMs: number): boolean {
  const holder = Atomics.compareExchange(word, 0, NOBODY, own);
  if (holder === NOBODY || holder === own) return true;
  return waitMs > 0 && Atomics.wait(word, 0, holder, waitMs) !== 'timed-out' && takeLineTurn(0);
}

export function leaveLineTurn(): void {
  if (Atomics.compareExchange(word, 0, own, NOBODY) === own) Atomics.notify(word, 0);
}

function sharedMemory(): SharedArrayBuffer {
  const known = getEnvironmentData(NAME);
  if (known instanceof SharedArrayBuffer) return known;
  const made = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  // Threads that are started from now on have it.
  setEnvironmentData(NAME, made);
  return made;
}

function idOf(thread: number): number {
  return thread + 1;
}

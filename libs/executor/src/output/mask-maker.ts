/**
 * Makes the search for the values of an attempt: of large ones on a thread, since one of 256 KiB takes half a second, and several
 * times that where much else runs.
 *
 *  MASKMAKER-1 What cannot be made on the thread is made here: no stage begins with less masked than it is to be.
 *  MASKMAKER-2 One thread at a time, which ends with its answer or its deadline.
 */
import { Worker } from 'node:worker_threads';
import { BoundedQueue } from '@penstock/async';
import { needlesOf } from './mask-needles.ts';
import { MaskScanner } from './mask-scanner.ts';
import type { MaskAnswer } from './mask-thread.ts';

/** Of all values: below ten milliseconds, which a thread's start takes too. */
const INLINE_CHARACTERS_MAX = 4 * 1024;
/** A starved process gets little of the second that it needs. */
const DEADLINE_MS = 60_000;
const YOUNG_MB_MAX = 24;
const PROGRAM = new URL('./mask-thread.ts', import.meta.url);

const queue = new BoundedQueue({ atOnce: 1 });

/** Null: there is nothing to look for. `program`: another one for the thread, in tests. */
export async function makeScanner(values: readonly string[], program = PROGRAM): Promise<MaskScanner | null> {
  if (values.reduce((sum, { length }) => sum + length, 0) <= INLINE_CHARACTERS_MAX) return scannerOf(values);
  const answer = await queue.run(() => onThread(values, program));
  if (answer === undefined) return scannerOf(values);
  return answer === null ? null : new MaskScanner(answer);
}

function scannerOf(values: readonly string[]): MaskScanner | null {
  const needles = needlesOf(values);
  return needles.length === 0 ? null : MaskScanner.of(needles);
}

/** Undefined: the thread failed, or was late. Its error may have a value in it and is told to nobody. */
async function onThread(values: readonly string[], program: URL): Promise<MaskAnswer | undefined> {
  const worker = new Worker(program, { execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX } });
  const { promise, resolve } = Promise.withResolvers<MaskAnswer | undefined>();
  const late = setTimeout(() => resolve(undefined), DEADLINE_MS);
  worker.on('message', (answer: MaskAnswer) => resolve(answer));
  worker.on('error', () => resolve(undefined));
  worker.on('exit', () => resolve(undefined));
  worker.postMessage(values);
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    void worker.terminate();
  }
}

/**
 * The thread that owns the connection. It answers calls one at a time, in the order of their arrival, so a caller's
 * oldest call is always the next to be answered. A call whose deadline has passed while it waited is not begun.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { CollectionSpec } from '../port.ts';
import type { DatabaseOptions } from './database.ts';
import { SqliteEngine, type Operation, type Results } from './engine.ts';
import type { Failure } from '../failure.ts';
import { monotonicMs } from './monotonic.ts';
import { failureOf } from './failures.ts';

export interface WorkerStart extends DatabaseOptions {
  readonly specs: readonly CollectionSpec[];
}

/** `expiresAtMs` is of the clock of `monotonic.ts`. */
export type WorkerCall =
  | { readonly id: number; readonly expiresAtMs: number; readonly operation: Operation }
  | { readonly close: true };
/** The answer to the opening has the id 0. */
export type WorkerAnswer =
  | { readonly id: number; readonly result: Results[Operation['kind']] }
  | { readonly id: number; readonly failure: Failure };

const port = parentPort;
if (port !== null) {
  const engine = open(workerData as WorkerStart);
  port.on('message', (call: WorkerCall) => {
    if ('close' in call) {
      engine?.close();
      port.close();
    } else {
      answer(call.id, () => {
        if (engine === null) throw new Error('the file was not opened');
        if (monotonicMs() > call.expiresAtMs)
          return { failure: { tag: 'unavailable', problem: 'it is busy; the call was not begun' } };
        return { result: engine.execute(call.operation) };
      });
    }
  });
}

function open(start: WorkerStart): SqliteEngine | null {
  let engine: SqliteEngine | null = null;
  answer(0, () => {
    engine = new SqliteEngine(start, start.specs);
    return { result: null };
  });
  return engine;
}

function answer(
  id: number,
  work: () => { readonly result: Results[Operation['kind']] } | { readonly failure: Failure },
): void {
  let outcome: { readonly result: Results[Operation['kind']] } | { readonly failure: Failure };
  try {
    outcome = work();
  } catch (error) {
    outcome = { failure: failureOf(error) };
  }
  port?.postMessage({ id, ...outcome } satisfies WorkerAnswer);
}

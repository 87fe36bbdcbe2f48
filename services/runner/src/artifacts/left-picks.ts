/**
 * Finds what is wanted of what a stage has left, on a thread: names and patterns are a stage's, and two million names against a hundred
 * patterns take a minute, in which a runner would answer nobody.
 *
 *  LEFT-PICKS-1 The thread has one task at a time, and the others wait here: one that takes it too long, or too much memory, ends with the
 *     thread, and none of the others with it.
 *  LEFT-PICKS-2 A stage that is stopped waits for nobody's task, nor for its own, and nobody waits for that: it ends with the thread.
 */
import { TaskThread, unlessAborted } from '@penstock/async';
import PQueue from 'p-queue';
import type { Picked, PickTask } from './pick-task.ts';

/** More than the patterns of one stage may take. */
const TASK_MS_MAX = 3 * 60_000;

export class PickTurns {
  readonly #ask: (task: PickTask, signal: AbortSignal) => Promise<Picked>;
  readonly #queue = new PQueue({ concurrency: 1 });

  constructor(ask: (task: PickTask, signal: AbortSignal) => Promise<Picked>) {
    this.#ask = ask;
  }

  /** Rejects with a reason for the stage's log, or with the signal's. */
  pick(task: PickTask, signal: AbortSignal): Promise<Picked> {
    const turn = this.#queue.add(() => {
      signal.throwIfAborted();
      return this.#ask(task, signal);
    });
    return unlessAborted(turn, signal);
  }
}

const thread = new TaskThread<PickTask, Picked>({
  program: new URL('./pick-thread.ts', import.meta.url),
  name: 'penstock-picks',
  taskMsMax: TASK_MS_MAX,
  tasksMax: 1,
});
const turns = new PickTurns((task, signal) => thread.ask(task, signal));

export function pickOnThread(task: PickTask, signal: AbortSignal): Promise<Picked> {
  return turns.pick(task, signal);
}

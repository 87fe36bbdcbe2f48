/**
 * Finds what is wanted of what a stage has left, on a thread: names and patterns are a stage's, and two million names against a hundred
 * patterns take a minute, in which a runner would answer nobody.
 */
import { TaskThread } from '@penstock/async';
import type { LeftPick } from '@penstock/executor';
import type { PickTask } from './pick-task.ts';

/** More than the patterns of one stage may take. */
const TASK_MS_MAX = 3 * 60_000;
const TASKS_MAX = 1_000;

const picks = new TaskThread<PickTask, LeftPick>({
  program: new URL('./pick-thread.ts', import.meta.url),
  name: 'penstock-picks',
  taskMsMax: TASK_MS_MAX,
  tasksMax: TASKS_MAX,
});

/** Rejects with a reason for the stage's log. */
export function pickOnThread(task: PickTask): Promise<LeftPick> {
  return picks.ask(task);
}

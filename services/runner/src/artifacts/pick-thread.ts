/** Finds what is wanted of what stages have left. */
import { answerTasks } from '@penstock/async';
import type { LeftPick } from '@penstock/executor';
import { pickFrom, type PickTask } from './pick-task.ts';

answerTasks<PickTask, LeftPick>(pickFrom);

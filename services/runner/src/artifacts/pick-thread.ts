/** Finds what is wanted of what stages have left. */
import { answerTasks } from '@penstock/async';
import { pickFrom, type Picked, type PickTask } from './pick-task.ts';

answerTasks<PickTask, Picked>(pickFrom);

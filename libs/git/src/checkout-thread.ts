/** Writes the workspaces of small commits. */
import { answerTasks } from '@penstock/async';
import { writeCheckout, type WriteTask } from './write-checkout.ts';

answerTasks<WriteTask, void>(writeCheckout);

/** Removes small trees. */
import { answerTasks } from '@penstock/async';
import { removeSmallTree, type SmallTree } from './small-tree.ts';

answerTasks<SmallTree, boolean>(removeSmallTree);

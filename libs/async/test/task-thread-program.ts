/** The thread of `task-thread.test.ts`. */
import { threadId } from 'node:worker_threads';
import { answerTasks } from '../src/index.ts';

answerTasks((task: { readonly say?: string; readonly fail?: string; readonly block?: true; readonly exit?: true }) => {
  if (task.fail !== undefined) throw Object.assign(new Error('it failed'), { code: task.fail });
  if (task.block) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (task.exit) process.exit(1);
  return `${task.say} ${threadId}`;
});

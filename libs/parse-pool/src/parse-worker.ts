/** The thread that reads files: one message is one file, one answer its result. */
import { parentPort } from 'node:worker_threads';
import { parsePipeline, usesOf } from '@penstock/pipeline';
import type { ParseAnswer, ParseTask, ThreadMessage } from './parse-task.ts';

parentPort?.on('message', ({ text, options }: ParseTask) => {
  // What stages share stays shared on the way, so that a definition costs the other side no more than here.
  const answer: ParseAnswer = options === undefined ? usesOf(text) : parsePipeline(text, options);
  parentPort?.postMessage(answer);
});

parentPort?.postMessage('loaded' satisfies ThreadMessage);

/** The thread that reads files: one message is one file, one answer its result. */
import { parentPort } from 'node:worker_threads';
import { definitionBytes, parsePipeline, usesOf } from '@penstock/pipeline';
import type { ParseTask, ThreadAnswer, ThreadMessage } from './parse-task.ts';

parentPort?.on('message', ({ text, options }: ParseTask) => {
  // What stages share stays shared on the way, so that a definition costs the other side no more than here.
  parentPort?.postMessage(options === undefined ? { answer: usesOf(text) } : read(text, options));
});

/** Measured here, where it holds nobody up. */
function read(text: string, options: NonNullable<ParseTask['options']>): ThreadAnswer {
  const answer = parsePipeline(text, options);
  return answer.ok ? { answer, bytes: definitionBytes(answer.definition) } : { answer };
}

parentPort?.postMessage('loaded' satisfies ThreadMessage);

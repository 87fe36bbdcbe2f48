/** The thread that reads files: one message is one file, one answer its result. */
import { parentPort } from 'node:worker_threads';
import { definitionBytes, parseManifest, parsePipeline, usesOf } from '@penstock/pipeline';
import type { ParseTask, ThreadAnswer, ThreadMessage } from './parse-task.ts';

parentPort?.on('message', ({ text, options, isManifest }: ParseTask) => {
  // What stages share stays shared on the way, so that a definition costs the other side no more than here.
  if (options !== undefined) parentPort?.postMessage(read(text, options));
  else parentPort?.postMessage({ answer: isManifest === true ? parseManifest(text) : usesOf(text) });
});

/** Measured here, where it holds nobody up. */
function read(text: string, options: NonNullable<ParseTask['options']>): ThreadAnswer {
  const answer = parsePipeline(text, options);
  return answer.ok ? { answer, bytes: definitionBytes(answer.definition) } : { answer };
}

parentPort?.postMessage('loaded' satisfies ThreadMessage);

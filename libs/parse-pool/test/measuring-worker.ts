/** Reads a file, and says of what it means that it takes 42 bytes. */
import { parentPort } from 'node:worker_threads';
import { parsePipeline } from '@penstock/pipeline';

parentPort?.on('message', ({ text }: { readonly text: string }) =>
  parentPort?.postMessage({ answer: parsePipeline(text), bytes: 42 }),
);

parentPort?.postMessage('loaded');

/** Never answers for a text that begins with `stuck`, ends for one that begins with `crash`, else says the text. */
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', ({ text }: { readonly text: string }) => {
  if (text.startsWith('crash')) throw new Error('crashed');
  while (text.startsWith('stuck'));
  parentPort?.postMessage({ answer: { ok: false, diagnostics: [{ message: text }] } });
});

parentPort?.postMessage('loaded');

/** The thread that parses large bodies: one message is one body, one answer what its provider reads in it. */
import { parentPort } from 'node:worker_threads';
import { BadUserInput } from '@penstock/errors';
import { providerNamed } from '../providers/recognise.ts';
import { readPayload, type PayloadAnswer, type PayloadTask } from './payload.ts';

parentPort?.on('message', (task: PayloadTask) => parentPort?.postMessage(answerTo(task)));

function answerTo({ provider: name, event, body }: PayloadTask): PayloadAnswer {
  const provider = providerNamed(name);
  if (provider === undefined) throw new RangeError(`there is no provider '${name}'`);
  try {
    return { ok: true, reading: readPayload(provider, event, body) };
  } catch (error) {
    if (error instanceof BadUserInput) return { ok: false, message: error.message };
    throw error;
  }
}

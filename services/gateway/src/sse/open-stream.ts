/** Makes a stream of a request: from the headers on it is written to by its client alone, and it ends where who asked is revoked, or its token is over. */
import type { Caller, Revocable, Revocations } from '@penstock/identity';
import type { FastifyReply } from 'fastify';
import { StreamClient } from './client.ts';
import { OPENING_FRAME } from './frames.ts';
import { STREAM_HEADERS } from './stream-headers.ts';

/** Timers take no longer times; a stream that lives for so long is one that comes back. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export type StreamRevocations = Pick<Revocations, 'isRevoked' | 'onRevoked' | 'accessChanges'>;

/** Resolves when the stream is over. */
export async function openStream(
  reply: FastifyReply,
  caller: Revocable & Pick<Caller, 'endsAt'>,
  revocations: StreamRevocations,
  /** `accessChanges` before it was asked what others let the caller do. */
  accessSeen: number,
  serve: (client: StreamClient) => Promise<void>,
): Promise<void> {
  reply.hijack();
  const headers = Object.entries(reply.getHeaders()).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  reply.raw.writeHead(200, { ...Object.fromEntries(headers), ...STREAM_HEADERS });
  const client = new StreamClient(reply.raw);
  client.write(OPENING_FRAME);
  const stopWaiting = revocations.onRevoked(caller, () => client.end());
  // It may have been revoked since it was looked at; of access nobody keeps whose it was, and who comes back is looked at anew.
  const mayHaveLost = caller.isGranted === true && revocations.accessChanges !== accessSeen;
  if (mayHaveLost || revocations.isRevoked(caller)) client.end();
  const { endsAt } = caller;
  const over =
    endsAt === undefined
      ? undefined
      : setTimeout(() => client.end(), Math.min(Math.max(0, endsAt - Date.now()), TIMER_MS_MAX));
  try {
    await serve(client);
  } finally {
    clearTimeout(over);
    stopWaiting();
  }
}

/**
 * Answers to requests whose body is not wanted: too large, or of a kind that nobody here reads. The connection is closed
 * behind the answer, but not at once: closing a socket with unread bytes resets it, and the client, still busy sending,
 * would see the reset instead of the answer.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Read and thrown away after the answer; a webhook's limit and as much again. */
const DISCARDED_BYTES_MAX = 64 * 1024 * 1024;
const DISCARDING_MS_MAX = 10_000;
/** A client that sends nothing for so long has noticed, or is waiting for us to close. */
const SILENCE_MS_MAX = 1_000;

/** Sends the answer as it stands in `reply` with this body, and ends the response when the client has stopped sending. */
export function answerUnread(request: FastifyRequest, reply: FastifyReply, status: number, body: string): FastifyReply {
  const { raw: incoming } = request;
  reply.header('Connection', 'close').header('Content-Length', String(Buffer.byteLength(body)));
  reply.hijack();
  const headers = Object.entries(reply.getHeaders()).filter(
    (entry): entry is [string, string | string[]] => entry[1] !== undefined,
  );
  reply.raw.writeHead(status, Object.fromEntries(headers));
  // The whole answer is out with this; only the end of the connection waits.
  reply.raw.write(body);
  let bytes = 0;
  const end = (): void => {
    clearTimeout(silence);
    clearTimeout(deadline);
    reply.raw.end();
  };
  const silence = setTimeout(end, SILENCE_MS_MAX);
  const deadline = setTimeout(end, DISCARDING_MS_MAX);
  incoming.on('data', (chunk: Buffer | string) => {
    silence.refresh();
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES_MAX) end();
  });
  incoming.once('end', end).once('close', end).once('error', end).resume();
  if (incoming.readableEnded || incoming.destroyed) end();
  return reply;
}

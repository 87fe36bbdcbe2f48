/** A server's end, bounded: clients that keep a request open must not hold up a stop. */
import type { FastifyInstance } from 'fastify';

/** Answers what is under way; after `deadlineMs` the connections that are left are broken off. */
export async function closeWithin(app: FastifyInstance, deadlineMs: number): Promise<void> {
  const force = setTimeout(() => app.server.closeAllConnections(), deadlineMs);
  try {
    await app.close();
  } finally {
    clearTimeout(force);
  }
}

/** Messages as bytes of a `text/event-stream`. */
import type { Cursor } from '../event-stream/cursor.ts';
import type { EmittedMessage } from '../event-stream/emitted-message.ts';

/** `id` is the cursor behind the message. JSON holds no line ends, so `data` is one line. */
export function frameOf(message: EmittedMessage, cursor: Cursor, runId: string): string {
  return `id: ${cursor.encode(runId)}\nevent: ${message.event}\ndata: ${message.data()}\n\n`;
}

/** A browser that lost the stream comes back after this time. */
const RECONNECT_MS = 2_000;

export const OPENING_FRAME = Buffer.from(`retry: ${RECONNECT_MS}\n\n`);
export const PING_FRAME = Buffer.from(': ping\n\n');
/** What every client receives when the server stops: it is to come back soon, wherever the address then leads. */
export const RECONNECT_FRAME = Buffer.from('retry: 500\n\n: this server is shutting down, reconnect to go on\n\n');

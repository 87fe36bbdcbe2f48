/** Messages as bytes of a `text/event-stream`. */
import type { Cursor } from '../event-stream/cursor.ts';
import type { Emission } from '../event-stream/emission.ts';

/**
 * The frames of its messages that the cursor does not have yet; the cursor moves behind them. Each `id` is the cursor behind its
 * message. JSON holds no line ends, so `data` is one line.
 */
export function framesOf(emission: Emission, cursor: Cursor, runId: string): string {
  const { position, event, count } = emission;
  const first = cursor.emittedOf(position, count);
  if (first === count) return '';
  if (position.kind === 'event') {
    cursor.advance(position);
    return frame(cursor.encode(runId), event, emission.data(0));
  }
  let text = '';
  const from = { ...position, index: position.index + first };
  if (from.kind === 'line') {
    const ids = cursor.encodeLines(from, count - first, runId);
    for (let index = first; index < count; index++)
      text += frame(ids[index - first] ?? '', event, emission.data(index));
    cursor.advance(from, count - first);
  } else {
    for (let index = first; index < count; index++) {
      cursor.advance({ ...position, index: position.index + index });
      text += frame(cursor.encode(runId), event, emission.data(index));
    }
  }
  return text;
}

function frame(id: string, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** A browser that lost the stream comes back after this time. */
const RECONNECT_MS = 2_000;

export const OPENING_FRAME = Buffer.from(`retry: ${RECONNECT_MS}\n\n`);
export const PING_FRAME = Buffer.from(': ping\n\n');
/** What every client receives when the server stops: it is to come back soon, wherever the address then leads. */
export const RECONNECT_FRAME = Buffer.from('retry: 500\n\n: this server is shutting down, reconnect to go on\n\n');

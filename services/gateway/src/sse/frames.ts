/** Messages as bytes of a `text/event-stream`. */
import type { Cursor, StreamPosition } from '../event-stream/cursor.ts';
import { type Emission, LineEmission } from '../event-stream/emission.ts';
import { Frames } from './frame-memory.ts';
import { writeLineFrames } from './line-frames.ts';
import { Scratch } from './scratch.ts';

/** Where frames are put together: all that is done with it is done in one go. */
const scratch = new Scratch();

/**
 * The frames of the first of these messages that the cursor does not have yet, in memory of their own: of all, or of as many
 * emissions as it takes for `bytesMin`. The cursor moves behind them.
 */
export function framesOf(
  emissions: readonly Emission[],
  cursor: Cursor,
  runId: string,
  bytesMin = Infinity,
  from = 0,
): { readonly frames: Frames; readonly next: number } {
  scratch.clear();
  let next = from;
  for (; next < emissions.length && scratch.length < bytesMin; next += 1) {
    const emission = emissions[next];
    if (emission !== undefined) putFrames(scratch, emission, cursor, runId);
  }
  return { frames: Frames.of(scratch.written), next };
}

/** Each `id` is the cursor behind its message. JSON holds no line ends, so `data` is one line. */
function putFrames(out: Scratch, emission: Emission, cursor: Cursor, runId: string): void {
  const { position, event, count } = emission;
  const first = cursor.emittedOf(position, count);
  if (first === count) return;
  if (position.kind === 'line' && emission instanceof LineEmission) {
    const index = position.index + first;
    writeLineFrames(out, emission, first, cursor.aroundLine(position, runId), index + 1);
    cursor.advance({ ...position, index }, count - first);
    return;
  }
  for (let index = first; index < count; index += 1) {
    cursor.advance(behind(position, index));
    out.putText(`id: ${cursor.encode(runId)}\nevent: ${event}\ndata: ${emission.data(index)}\n\n`);
  }
}

function behind(position: StreamPosition, messages: number): StreamPosition {
  return position.kind === 'event' ? position : { ...position, index: position.index + messages };
}

/** A browser that lost the stream comes back after this time. */
const RECONNECT_MS = 2_000;

/** A line of whatever comes next: a block of its own would be a message without an event to who reads by blocks. */
export const OPENING_FRAME = Buffer.from(`retry: ${RECONNECT_MS}\n`);
export const PING_FRAME = Buffer.from(': ping\n\n');
/** All that had happened before the client came is before this: clients that do not know it pass over comments. */
export const CAUGHT_UP_FRAME = Buffer.from(': caught up\n\n');
/** What every client receives when the server stops: it is to come back soon, wherever the address then leads. */
export const RECONNECT_FRAME = Buffer.from(': this server is shutting down, reconnect to go on\nretry: 500\n\n');

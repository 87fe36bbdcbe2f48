/**
 * A client and its cursor. It either reads by itself, at its own pace, or follows a feed's ring; a client
 * that the ring has overtaken goes back to reading by itself.
 */
import type { Cursor } from '../event-stream/cursor.ts';
import type { Emission } from '../event-stream/emission.ts';
import { EventStream } from '../event-stream/event-stream.ts';
import { WRITE_BYTES, type StreamSink } from './client.ts';
import type { Frames } from './frame-memory.ts';
import { CAUGHT_UP_FRAME, framesOf } from './frames.ts';
import type { Batch, Ring } from './ring.ts';
import type { RunSource } from './run-source.ts';

export class Follower {
  readonly client: StreamSink;
  readonly runId: string;
  readonly cursor: Cursor;
  /** The batch it wants next; undefined while it reads by itself. */
  next: number | undefined;
  /** The batch behind the past, until the client has been told that it has that. */
  pastEnd: number | undefined;
  /** In one of the orders it is ahead of the feed: messages that it has already are left out. */
  #filtering = false;

  constructor(client: StreamSink, runId: string, cursor: Cursor) {
    this.client = client;
    this.runId = runId;
    this.cursor = cursor.copy();
  }

  /** False: the ring does not hold all that this client lacks. */
  join(ring: Ring): boolean {
    this.next = ring.joinAt(this.cursor);
    this.#filtering = true;
    return this.next !== undefined;
  }

  /** Writes what the ring has and the socket takes. False: the ring has overtaken it. */
  follow(ring: Ring): boolean {
    while (this.next !== undefined && this.next < ring.next && this.client.hasRoom) {
      const batch = ring.batch(this.next);
      if (batch === undefined) {
        this.next = undefined;
        return false;
      }
      this.#write(batch);
      this.next += 1;
    }
    if (this.pastEnd !== undefined && this.next !== undefined && this.next >= this.pastEnd) {
      this.client.write(CAUGHT_UP_FRAME);
      this.pastEnd = undefined;
    }
    return true;
  }

  #write(batch: Batch): void {
    if (this.#filtering && !(batch.before.covers(this.cursor) && this.cursor.covers(batch.before))) {
      for (const frames of this.#writesOf(batch.emissions)) this.client.write(frames.bytes, frames.letGo);
      return;
    }
    this.#filtering = false;
    const { frames } = batch;
    frames.hold();
    this.client.write(frames.bytes, frames.letGo);
    this.cursor.set(batch.after);
  }

  /**
   * Writes everything there is from the sources, pausing whenever the socket is full. Resolves with whether the event
   * stream has ended; rejects with what reading rejects with.
   */
  async read(source: RunSource): Promise<'ended' | 'not ended'> {
    const signal = this.client.closed;
    const eventStream = new EventStream();
    const ask = async (): Promise<void> => {
      const first = eventStream.version + 1;
      eventStream.addEvents(first, await source.events(first - 1));
    };
    await ask();
    const version = eventStream.version;
    for (const needsAll of [false, true]) {
      // Before it says that something is missing it reads what is sure to be all that is stored.
      if (needsAll) await this.#send(eventStream.take());
      if (needsAll && !eventStream.lacksChunksUpTo(version)) break;
      let isAsked = !needsAll;
      for await (const chunk of source.chunks(eventStream.sequence + 1, signal, needsAll)) {
        if (!isAsked) await ask();
        isAsked = true;
        eventStream.addChunk(chunk);
        await this.#send(eventStream.take());
        if (eventStream.waitsFor === 'events') {
          // All chunks of this reading were stored before it began: whatever names one of them is known now.
          await ask();
          eventStream.eventsAsked(Number.MAX_SAFE_INTEGER);
          await this.#send(eventStream.take());
        }
        if (signal.aborted || eventStream.ended) break;
      }
    }
    eventStream.chunksAsked(version);
    await this.#send(eventStream.take());
    return eventStream.ended ? 'ended' : 'not ended';
  }

  async #send(emissions: readonly Emission[]): Promise<void> {
    for (const frames of this.#writesOf(emissions)) {
      await this.client.room();
      if (this.client.closed.aborted) return;
      this.client.write(frames.bytes, frames.letGo);
    }
  }

  /** The messages that it does not have yet, in pieces of one write; the cursor moves as they are taken. */
  *#writesOf(emissions: readonly Emission[]): Iterable<Frames> {
    for (let from = 0; from < emissions.length;) {
      const { frames, next } = framesOf(emissions, this.cursor, this.runId, WRITE_BYTES, from);
      from = next;
      if (frames.bytes.length > 0) yield frames;
    }
  }
}

/**
 * A client and how far it has been told. It either reads by itself, at its own pace, or follows a feed's ring; a client
 * that the ring has overtaken goes back to reading by itself.
 */
import type { Told } from '../event-stream/cursor.ts';
import type { StoryMessage } from '../event-stream/emitted-message.ts';
import { Story } from '../event-stream/event-stream.ts';
import { WRITE_BYTES, type StreamClient } from './client.ts';
import { frameOf } from './frames.ts';
import type { Batch, Ring } from './ring.ts';
import type { RunSource } from './run-source.ts';

export class Follower {
  readonly client: StreamClient;
  readonly runId: string;
  readonly told: Told;
  /** The batch it wants next; undefined while it reads by itself. */
  next: number | undefined;
  /** It was told more than the feed had, in one of the orders: what it knows already is left out. */
  #filtering = false;

  constructor(client: StreamClient, runId: string, told: Told) {
    this.client = client;
    this.runId = runId;
    this.told = told.copy();
  }

  /** False: the ring does not hold all that this client lacks. */
  join(ring: Ring): boolean {
    this.next = ring.joinAt(this.told);
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
    return true;
  }

  #write(batch: Batch): void {
    if (this.#filtering && !(batch.before.covers(this.told) && this.told.covers(batch.before))) {
      for (const bytes of this.#framesOf(batch.messages)) this.client.write(bytes);
      return;
    }
    this.#filtering = false;
    this.client.write(batch.bytes);
    Object.assign(this.told, batch.after);
  }

  /**
   * Tells everything there is from the sources, pausing whenever the socket is full. Resolves with whether the story has
   * ended; rejects with what reading rejects with.
   */
  async read(source: RunSource): Promise<'ended' | 'not ended'> {
    const signal = this.client.closed;
    const story = new Story();
    const ask = async (): Promise<void> => {
      const first = story.version + 1;
      story.addEvents(first, await source.events(first - 1));
    };
    await ask();
    const version = story.version;
    for await (const chunk of source.chunks(1, signal)) {
      story.addChunk(chunk);
      await this.#tell(story.take());
      if (story.waitsFor === 'events') {
        // All chunks of this reading were stored before it began: whatever names one of them is known now.
        await ask();
        story.eventsAsked(Number.MAX_SAFE_INTEGER);
        await this.#tell(story.take());
      }
      if (signal.aborted || story.ended) break;
    }
    story.chunksAsked(version);
    await this.#tell(story.take());
    return story.ended ? 'ended' : 'not ended';
  }

  async #tell(messages: readonly StoryMessage[]): Promise<void> {
    for (const bytes of this.#framesOf(messages)) {
      await this.client.room();
      if (this.client.closed.aborted) return;
      this.client.write(bytes);
    }
  }

  /** Of what it does not know yet, in pieces of one write; what is taken counts as told. */
  *#framesOf(messages: readonly StoryMessage[]): Iterable<Buffer> {
    let text = '';
    for (const message of messages) {
      if (!this.told.admits(message.place)) continue;
      this.told.advance(message.place);
      text += frameOf(message, this.told, this.runId);
      if (text.length >= WRITE_BYTES) {
        yield Buffer.from(text);
        text = '';
      }
    }
    if (text !== '') yield Buffer.from(text);
  }
}

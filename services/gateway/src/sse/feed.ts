/**
 * A watched run: its event stream is read once, for all of its clients. It owns the subscriptions, the event stream and the
 * ring, and lives while somebody watches.
 *
 *  FEED-1 It subscribes before it asks; what comes meanwhile is kept and put behind the answer (P20).
 *  FEED-2 A gap in versions or in a runner's sequences, a new owner, a reconnection and each ping ask again.
 *  FEED-3 At most one round of asking is under way, and one more is remembered.
 *  FEED-4 A client costs the feed nothing but a pointer into the ring; a slow one holds up nobody.
 *  FEED-5 A round of asking compares what each runner has stored with what was given of it, and reads what is missing.
 *  FEED-6 It goes so far ahead of the quickest of its clients and no further: what is stored beyond that is read when there is room
 *     for it, so that an output which is faster than every client is read once, and not by each of them from its beginning.
 *  FEED-7 While it is behind, chunks come as they are read and in no other way: it listens again once it has read all there are, and
 *     asks for what came before it did.
 *  FEED-8 Before it says that something is missing it reads what is sure to be all that is stored.
 *  FEED-9 A client is told when it has all that had happened before it came, once, and however long that takes.
 *  FEED-10 Of a run that was deleted before its end was heard nothing comes any more: its clients are sent away, and find that out when they
 *     come back.
 */
import { machineTime, type Time } from '@penstock/async';
import type { LiveChunk, StoredChunk } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import type { RunEvent } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';
import type { Emission } from '../event-stream/emission.ts';
import { EventStream } from '../event-stream/event-stream.ts';
import type { Follower } from './follower.ts';
import { Ring } from './ring.ts';
import type { Listening, RunSource } from './run-source.ts';
import { WATCH_ASK_MS } from '@penstock/bus';

/** Writes are expensive (12 us each): the messages of this time share one. */
const TICK_MS = 20;
/** Chunks and events come by different ways: what an event waits for is mostly here a moment later. */
const LATE_CHUNK_MS = 50;
const RETRY_MS = 1_000;
/** Of live chunks that are kept while a round of asking is under way; further ones are read from the stream. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;
/** So many chunks of a round are handled in one go. */
const CHUNKS_IN_A_GO = 8;
/** Of messages that wait for the tick: short lines are many times as long in the stream as they are in their chunk. */
const PENDING_BYTES = 1024 * 1024;
/** How far it may be ahead: half of what the ring keeps for clients. */
const AHEAD_BYTES = 4 * 1024 * 1024;

export class Feed {
  readonly source: RunSource;
  readonly ring: Ring;
  readonly #log: Log;
  readonly #eventStream = new EventStream();
  readonly #followers = new Set<Follower>();
  readonly #listening: Listening;
  readonly #stopped = new AbortController();
  readonly #time: Time;
  readonly #meter: Meter;
  /** When the last event was decided that was heard and not written yet, milliseconds since 1970. */
  #heardEventAt: number | undefined;
  #stopPings: () => void = () => {};
  readonly #onOver: () => void;
  /** The sequence of each runner's last chunk that the event stream was given. */
  readonly #lastOf = new Map<string, number>();
  /** Up to this sequence the event stream was given the chunks of all runners. */
  #completeTo = 0;
  #held: LiveChunk[] = [];
  #heldBytes = 0;
  /** Held chunks whose predecessors are looked for. */
  readonly #missed = new Set<LiveChunk>();
  #asking: Promise<void> | undefined;
  #askAgain = false;
  #pending: Emission[] = [];
  #pendingBytes = 0;
  /** FEED-6: there while no client has room for more; resolved when one has. */
  #lead: PromiseWithResolvers<void> | undefined;
  #aheadSoon: PromiseWithResolvers<void> | undefined;
  /** FEED-7: chunks are not heard. */
  #isBehind = false;
  #callOffFlush: () => void = () => {};
  #flushScheduled = false;
  #flushedAt = -Infinity;
  #lateChunk: (() => void) | undefined;

  /** `onOver`: the event stream is complete, or gone, and clients that come now read by themselves; may be called more than once. */
  constructor(
    source: RunSource,
    log: Log,
    onOver: () => void,
    { time = machineTime, meter = noMeter }: { readonly time?: Time; readonly meter?: Meter } = {},
  ) {
    this.source = source;
    this.ring = new Ring(source.runId);
    this.#log = log;
    this.#time = time;
    this.#meter = meter;
    this.#onOver = onOver;
    this.#listening = source.listen({
      onEvents: (first, events) => this.#heardEvents(first, events),
      onChunk: (chunk) => this.#heardChunk(chunk),
      onAskAgain: () => void this.ask(),
    });
    this.#pingLater();
  }

  /** Resolves when a round of asking that began now is over. Never rejects. */
  ask(): Promise<void> {
    if (this.#asking !== undefined) {
      this.#askAgain = true;
      return this.#asking;
    }
    this.#asking = this.#askRounds().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** For a client that is about to join: as `ask`, and not longer than the others have room for more. */
  async asked(): Promise<void> {
    if (this.#lead !== undefined) return;
    this.#aheadSoon ??= Promise.withResolvers();
    await Promise.race([this.ask(), this.#aheadSoon.promise]);
  }

  /** Follows from now on. False: the client has to read more by itself first. */
  join(follower: Follower): boolean {
    this.#flushNow();
    if (!follower.join(this.ring)) return false;
    this.#followers.add(follower);
    follower.client.onRoom = () => this.#serve(follower);
    this.#serve(follower);
    return true;
  }

  /** FEED-9. Never rejects. */
  async tellPast(follower: Follower): Promise<void> {
    await this.ask();
    this.#flushNow();
    follower.pastEnd = this.ring.next;
    if (this.#followers.has(follower)) this.#serve(follower);
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    follower.client.onRoom = () => {};
    if (this.#lead !== undefined) this.#measureLead();
  }

  /** Called for a client that the ring has overtaken: it has left, and has to read by itself. */
  readonly overtaken = new Map<Follower, () => void>();

  stop(): void {
    this.#stopped.abort();
    this.#lead?.resolve();
    this.#listening.stop();
    this.#stopPings();
    this.#lateChunk?.();
    this.#callOffFlush();
  }

  #pingLater(): void {
    this.#stopPings = this.#time.after(WATCH_ASK_MS, () => {
      this.#pingLater();
      void this.ask();
    });
  }

  // --- What is heard -----------------------------------------------------------------------------------------------

  #heardEvents(first: number, events: readonly RunEvent[]): void {
    if (first > this.#eventStream.version + 1) {
      void this.ask();
      return;
    }
    this.#eventStream.addEvents(first, events);
    this.#heardEventAt = events.at(-1)?.at ?? this.#heardEventAt;
    this.#advance();
  }

  #heardChunk(chunk: LiveChunk): void {
    // On its way when the feed fell behind: it is stored.
    if (this.#isBehind) return;
    if (this.#asking === undefined && this.#give(chunk)) {
      this.#advance();
      return;
    }
    if (this.#heldBytes < HELD_BYTES_MAX) this.#hold(chunk);
    else this.#askAgain = true;
    if (this.#asking === undefined) void this.ask();
  }

  #hold(chunk: LiveChunk): void {
    this.#held.push(chunk);
    this.#heldBytes += chunk.chunk.output.length;
  }

  /** False: chunks of its runner are missing before it. */
  #give(chunk: LiveChunk): boolean {
    const last = this.#lastOf.get(chunk.runner) ?? 0;
    if (chunk.sequence <= last) return true;
    if (chunk.lastSequenceOfSubject !== last) return false;
    this.#add(chunk);
    return true;
  }

  #add(chunk: StoredChunk): void {
    if (chunk.sequence <= (this.#lastOf.get(chunk.runner) ?? 0)) return;
    this.#lastOf.set(chunk.runner, chunk.sequence);
    this.#eventStream.addChunk(chunk);
  }

  // --- What is asked -----------------------------------------------------------------------------------------------

  async #askRounds(): Promise<void> {
    do {
      this.#askAgain = false;
      try {
        await this.#askOnce();
        this.#giveHeld();
        this.#advance();
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof NotFound) {
          this.#sendAway();
          return;
        }
        this.#log.warn({ runId: this.source.runId, err: error }, 'a watched run cannot be read; trying again');
        await this.#time.pause(RETRY_MS, this.#stopped.signal);
        if (this.#stopped.signal.aborted) return;
        this.#askAgain = true;
      }
      if (this.#eventStream.waitsFor === 'events') this.#askAgain = true;
    } while (this.#askAgain && !this.#stopped.signal.aborted && !this.#eventStream.ended);
  }

  /** FEED-10. One that joins meanwhile is sent away by the next ping. */
  #sendAway(): void {
    this.#onOver();
    for (const follower of this.#followers) {
      this.leave(follower);
      follower.client.end();
    }
  }

  async #askOnce(): Promise<void> {
    const eventStream = this.#eventStream;
    const { sequence } = eventStream;
    const after = eventStream.version;
    const events = await this.source.events(after);
    eventStream.addEvents(after + 1, events);
    eventStream.eventsAsked(sequence);
    this.#advance();
    const { version } = eventStream;
    await this.#readMissing();
    this.#advance();
    // FEED-8
    if (eventStream.lacksChunksUpTo(version) || this.#held.some((chunk) => this.#missed.has(chunk)))
      await this.#readMissing(true);
    eventStream.chunksAsked(version);
    if (this.#isBehind && this.#lead === undefined) this.#listenAgain();
  }

  /** FEED-7. */
  #listenAgain(): void {
    this.#isBehind = false;
    this.#listening.hearChunks(true);
    this.#askAgain = true;
  }

  /** Reading begins behind the runner that lacks the most: that may lie before what others have sent (FEED-5). */
  async #readMissing(needsAll = false): Promise<void> {
    const { signal } = this.#stopped;
    const stored = await this.source.lastSequences(signal, needsAll, this.#completeTo);
    const lacking = [...stored].flatMap(([runner, last]) => {
      const given = Math.max(this.#lastOf.get(runner) ?? 0, this.#completeTo);
      return last > given ? [given] : [];
    });
    if (lacking.length > 0) {
      let given = 0;
      for await (const chunk of this.source.chunks(Math.min(...lacking) + 1, signal, needsAll)) {
        this.#add(chunk);
        given += 1;
        if (given % CHUNKS_IN_A_GO === 0) this.#advance();
        if (this.#lead !== undefined) await this.#lead.promise;
        if (signal.aborted) return;
      }
    }
    this.#completeTo = Math.max(this.#completeTo, ...stored.values());
  }

  #giveHeld(): void {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const chunk of held) {
      if (this.#give(chunk)) {
        this.#missed.delete(chunk);
      } else if (this.#missed.delete(chunk)) {
        // A round has looked for what should stand before it: that is gone for good.
        this.#add(chunk);
      } else {
        this.#missed.add(chunk);
        this.#hold(chunk);
        this.#askAgain = true;
      }
    }
  }

  // --- What is emitted ------------------------------------------------------------------------------------------------

  #advance(): void {
    const emissions = this.#eventStream.take();
    for (const emission of emissions) {
      this.#pending.push(emission);
      this.#pendingBytes += emission.size;
    }
    if (this.#pendingBytes >= PENDING_BYTES) this.#flushNow();
    else if (emissions.length > 0 || this.#eventStream.ended) this.#flushSoon();
    const { waitsFor } = this.#eventStream;
    if (waitsFor === null || this.#isBehind) {
      this.#lateChunk?.();
      this.#lateChunk = undefined;
    } else {
      this.#lateChunk ??= this.#time.after(LATE_CHUNK_MS, () => {
        this.#lateChunk = undefined;
        void this.ask();
      });
    }
  }

  #flushSoon(): void {
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    const waitMs = this.#flushedAt + TICK_MS - this.#time.bootNow();
    if (waitMs <= 0) void this.#time.turn().then(() => this.#flushNow());
    else this.#callOffFlush = this.#time.after(waitMs, () => this.#flushNow());
  }

  #flushNow(): void {
    if (this.#stopped.signal.aborted) return;
    this.#callOffFlush();
    this.#flushScheduled = false;
    if (this.#pending.length > 0) {
      this.#flushedAt = this.#time.bootNow();
      this.ring.push(this.#pending, Math.min(...this.#wanted()));
      this.#pending = [];
      this.#pendingBytes = 0;
      for (const follower of this.#followers) this.#serve(follower);
      this.#measureLead();
      if (this.#heardEventAt !== undefined && this.#followers.size > 0)
        this.#meter.observe('penstock_stream_lag_seconds', {}, (this.#time.wallNow() - this.#heardEventAt) / 1_000);
      this.#heardEventAt = undefined;
    }
    if (this.#eventStream.ended) {
      this.#onOver();
      for (const follower of this.#followers) this.#serve(follower);
    }
  }

  *#wanted(): Iterable<number> {
    yield this.ring.next;
    for (const { next } of this.#followers) if (next !== undefined) yield next;
  }

  #measureLead(): void {
    let quickest = -1;
    for (const { next } of this.#followers) quickest = Math.max(quickest, next ?? -1);
    if (quickest < 0 || this.ring.sizeFrom(quickest) < AHEAD_BYTES) {
      this.#goOn();
    } else if (this.#lead === undefined) {
      this.#lead = Promise.withResolvers();
      this.#isBehind = true;
      this.#listening.hearChunks(false);
      this.#aheadSoon?.resolve();
      this.#aheadSoon = undefined;
    }
  }

  /** What was left out is read. */
  #goOn(): void {
    if (this.#lead === undefined) return;
    this.#lead.resolve();
    this.#lead = undefined;
    void this.ask();
  }

  #serve(follower: Follower): void {
    const isServed = follower.follow(this.ring);
    if (this.#lead !== undefined && follower.next !== undefined && this.ring.sizeFrom(follower.next) < AHEAD_BYTES / 2)
      this.#goOn();
    if (!isServed) {
      this.leave(follower);
      this.overtaken.get(follower)?.();
    } else if (this.#eventStream.ended && this.#pending.length === 0 && follower.next === this.ring.next) {
      this.leave(follower);
      follower.client.end();
    }
  }
}

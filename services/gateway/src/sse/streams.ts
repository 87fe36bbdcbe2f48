/**
 * All open log streams and the feeds that they share. It owns both: a feed lives while a stream of its run is open and
 * the run goes on; every stream is pinged every 15 s and closed where it does not move.
 */
import { machineTime, type Time } from '@penstock/async';
import { NotFound } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import { noMeter, type Meter } from '@penstock/telemetry/metrics';
import type { Cursor } from '../event-stream/cursor.ts';
import type { StreamSink } from './client.ts';
import { Feed } from './feed.ts';
import { Follower } from './follower.ts';
import { PING_FRAME, RECONNECT_FRAME } from './frames.ts';
import type { RunSource } from './run-source.ts';

const PING_MS = 15_000;
/** Pings are timed this finely: they are late by that much at most. */
const WHEEL_MS = 500;
/** Runs are remembered of which nobody has the events; of more it is found out again. */
const WITHOUT_EVENTS_MAX = 1_000;
/** The time before a source that could not be read is tried again. */
const RETRY_MS = 1_000;

interface Watched {
  readonly feed: Feed;
  streams: number;
}

export interface StreamsOptions {
  readonly time?: Time;
  readonly meter?: Meter;
}

export class Streams {
  readonly #log: Log;
  readonly #feeds = new Map<string, Watched>();
  readonly #withoutEvents = new Set<string>();
  /** Each client has the time of its next ping. */
  readonly #clients = new Map<StreamSink, number>();
  readonly #time: Time;
  readonly #meter: Meter;
  /** Turns while there are clients. */
  #stopWheel: (() => void) | undefined;
  #stopping = false;

  constructor(log: Log, { time = machineTime, meter = noMeter }: StreamsOptions = {}) {
    this.#log = log;
    this.#time = time;
    this.#meter = meter;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Sends the run's event stream behind `cursor`, to its end. `live`: the run may not have ended yet. Resolves when the stream is over. */
  async serve(client: StreamSink, source: RunSource, cursor: Cursor, live: boolean): Promise<void> {
    if (this.#stopping) {
      client.end(RECONNECT_FRAME);
      return;
    }
    this.#clients.set(client, this.#time.bootNow() + PING_MS);
    this.#turnWheel();
    const watched = live ? this.#watch(source) : undefined;
    const follower = new Follower(client, source.runId, cursor);
    const closed = new Promise<void>((resolve) => {
      if (client.closed.aborted) resolve();
      client.closed.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      if (watched !== undefined) {
        watched.feed.overtaken.set(follower, () => void this.#catchUp(follower, source, watched.feed));
        void watched.feed.tellPast(follower);
        await Promise.race([watched.feed.asked(), closed]);
        if (!client.closed.aborted && !watched.feed.join(follower)) await this.#catchUp(follower, source, watched.feed);
      } else {
        await this.#catchUp(follower, source, undefined);
      }
      await closed;
    } catch (error) {
      // Nobody else can answer any more: the client comes back by its cursor.
      this.#log.error({ runId: source.runId, err: error }, 'a log stream failed');
      client.destroy();
    } finally {
      this.#clients.delete(client);
      if (watched !== undefined) {
        watched.feed.leave(follower);
        watched.feed.overtaken.delete(follower);
        this.#unwatch(source.runId, watched);
      }
    }
  }

  /** Whether a stream of the run has ended because nobody has its events: who comes again is to be told so, and not to wait. */
  foundNoEvents(runId: string): boolean {
    return this.#withoutEvents.has(runId);
  }

  #hasNoEvents(runId: string): void {
    if (this.#withoutEvents.size >= WITHOUT_EVENTS_MAX) this.#withoutEvents.clear();
    this.#withoutEvents.add(runId);
  }

  /** Ends all streams with the hint to come back. */
  stop(): void {
    this.#stopping = true;
    this.#stopWheel?.();
    for (const client of this.#clients.keys()) client.end(RECONNECT_FRAME);
    for (const { feed } of this.#feeds.values()) feed.stop();
    this.#feeds.clear();
  }

  /** Reads by itself until the event stream has ended, or until the feed holds all that is left. */
  async #catchUp(follower: Follower, source: RunSource, feed: Feed | undefined): Promise<void> {
    const { client } = follower;
    while (!client.closed.aborted) {
      try {
        const outcome = await follower.read(source);
        if (outcome === 'ended') {
          client.end();
          return;
        }
        if (feed?.join(follower)) return;
        if (feed === undefined) await this.#time.pause(RETRY_MS);
      } catch (error) {
        if (client.closed.aborted) return;
        if (error instanceof NotFound) {
          this.#hasNoEvents(source.runId);
          client.end();
          return;
        }
        this.#log.warn({ runId: source.runId, err: error }, 'a log stream cannot be read; trying again');
        await this.#time.pause(RETRY_MS);
      }
    }
  }

  #watch(source: RunSource): Watched {
    let watched = this.#feeds.get(source.runId);
    if (watched === undefined) {
      const onOver = (): void => {
        // Who comes from now on reads an ended run; those that follow are still served.
        if (this.#feeds.get(source.runId)?.feed === feed) this.#feeds.delete(source.runId);
      };
      const feed: Feed = new Feed(source, this.#log, onOver, { time: this.#time, meter: this.#meter });
      watched = { feed, streams: 0 };
      this.#feeds.set(source.runId, watched);
    }
    watched.streams += 1;
    return watched;
  }

  #unwatch(runId: string, watched: Watched): void {
    watched.streams -= 1;
    if (watched.streams > 0) return;
    watched.feed.stop();
    if (this.#feeds.get(runId) === watched) this.#feeds.delete(runId);
  }

  #turnWheel(): void {
    if (this.#stopping) return;
    this.#stopWheel ??= this.#time.after(WHEEL_MS, () => {
      this.#stopWheel = undefined;
      this.#pingAll();
      if (this.#clients.size > 0) this.#turnWheel();
    });
  }

  #pingAll(): void {
    const now = this.#time.bootNow();
    for (const [client, pingAt] of this.#clients) {
      client.closeIfStalled();
      if (pingAt > now) continue;
      client.write(PING_FRAME);
      this.#clients.set(client, pingAt + PING_MS);
    }
  }
}

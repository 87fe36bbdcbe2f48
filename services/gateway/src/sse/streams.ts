/**
 * All open log streams and the feeds that they share. It owns both: a feed lives while a stream of its run is open and
 * the run goes on; every stream is pinged every 15 s and closed where it does not move.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { NotFound } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import type { Cursor } from '../event-stream/cursor.ts';
import type { StreamClient } from './client.ts';
import { Feed } from './feed.ts';
import { Follower } from './follower.ts';
import { PING_FRAME, RECONNECT_FRAME } from './frames.ts';
import type { RunSource } from './run-source.ts';

const PING_MS = 15_000;
/** Pings are timed this finely: they are late by that much at most. */
const WHEEL_MS = 500;
/** The time before a source that could not be read is tried again. */
const RETRY_MS = 1_000;

interface Watched {
  readonly feed: Feed;
  streams: number;
}

export class Streams {
  readonly #log: Log;
  readonly #feeds = new Map<string, Watched>();
  /** Each client has the time of its next ping. */
  readonly #clients = new Map<StreamClient, number>();
  readonly #wheel: NodeJS.Timeout;
  #stopping = false;

  constructor(log: Log) {
    this.#log = log;
    this.#wheel = setInterval(() => this.#pingAll(), WHEEL_MS);
    this.#wheel.unref();
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Sends the run's event stream behind `cursor`, to its end. `live`: the run may not have ended yet. Resolves when the stream is over. */
  async serve(client: StreamClient, source: RunSource, cursor: Cursor, live: boolean): Promise<void> {
    if (this.#stopping) {
      client.end(RECONNECT_FRAME);
      return;
    }
    this.#clients.set(client, performance.now() + PING_MS);
    const watched = live ? this.#watch(source) : undefined;
    const follower = new Follower(client, source.runId, cursor);
    const closed = new Promise<void>((resolve) => {
      if (client.closed.aborted) resolve();
      client.closed.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      if (watched !== undefined) {
        watched.feed.overtaken.set(follower, () => void this.#catchUp(follower, source, watched.feed));
        await Promise.race([watched.feed.ask(), closed]);
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

  /** Ends all streams with the hint to come back. */
  stop(): void {
    this.#stopping = true;
    clearInterval(this.#wheel);
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
        if (feed === undefined) await pause(RETRY_MS);
      } catch (error) {
        if (client.closed.aborted) return;
        if (error instanceof NotFound) {
          client.end();
          return;
        }
        this.#log.warn({ runId: source.runId, err: error }, 'a log stream cannot be read; trying again');
        await pause(RETRY_MS);
      }
    }
  }

  #watch(source: RunSource): Watched {
    let watched = this.#feeds.get(source.runId);
    if (watched === undefined) {
      const feed = new Feed(source, this.#log, () => {
        // Who comes from now on reads an ended run; those that follow are still served.
        if (this.#feeds.get(source.runId)?.feed === feed) this.#feeds.delete(source.runId);
      });
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

  #pingAll(): void {
    const now = performance.now();
    for (const [client, pingAt] of this.#clients) {
      client.closeIfStalled();
      if (pingAt > now) continue;
      client.write(PING_FRAME);
      this.#clients.set(client, pingAt + PING_MS);
    }
  }
}

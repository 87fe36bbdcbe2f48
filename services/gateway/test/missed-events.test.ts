/** A feed, with what its run says in the hands of the test. */
import type { LiveChunk } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Feed } from '../src/sse/feed.ts';
import { created, queued, RUN_ID, started } from './event-stream-fixtures.ts';

// No ping comes by itself.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

describe('a feed that has missed events (P20)', () => {
  it('asks for them at once when it hears of later ones, not at the next ping', async () => {
    const all: readonly RunEvent[] = [created(), queued('a'), started('a'), queued('b')];
    const asked: number[] = [];
    let hear: (first: number, events: readonly RunEvent[]) => void = () => {};
    const feed = new Feed(
      {
        runId: RUN_ID,
        events: (after) => {
          asked.push(after);
          return Promise.resolve(all.slice(after, asked.length === 1 ? 1 : all.length));
        },
        lastSequences: () => Promise.resolve(new Map()),
        async *chunks() {},
        listen: (listeners: {
          readonly onEvents: typeof hear;
          readonly onChunk: (chunk: LiveChunk) => void;
          readonly onAskAgain: () => void;
        }) => {
          hear = listeners.onEvents;
          return { hearChunks: () => {}, stop: () => {} };
        },
      },
      silentLogger(),
      () => {},
    );
    await feed.ask();
    expect(asked).toEqual([0]);
    hear(4, all.slice(3));
    await vi.waitFor(() => expect(asked).toEqual([0, 1]));
    feed.stop();
  });
});

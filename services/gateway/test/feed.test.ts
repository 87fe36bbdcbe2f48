import { setImmediate as nextTurn } from 'node:timers/promises';
import { silentLog } from '@penstock/telemetry/log';
import type { LiveChunk, StoredChunk } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import { afterEach, expect, it } from 'vitest';
import type { EmittedMessage } from '../src/event-stream/emitted-message.ts';
import { Cursor } from '../src/event-stream/cursor.ts';
import { Feed } from '../src/sse/feed.ts';
import type { RunSource } from '../src/sse/run-source.ts';
import { chunk, completed, created, outlineOf, runCompleted, RUN_ID, started } from './event-stream-fixtures.ts';

const feeds: Feed[] = [];
afterEach(() => {
  for (const feed of feeds.splice(0)) feed.stop();
});

/** A run whose messages arrive when the test says so. */
class HeardRun implements RunSource {
  readonly runId = RUN_ID;
  readonly stored: StoredChunk[] = [];
  readonly committed: RunEvent[] = [created(), started('a', 1, 'r1'), started('b', 1, 'r2')];
  readonly readFrom: number[] = [];
  #onChunk: (chunk: LiveChunk) => void = () => {};
  #onEvents: (first: number, events: readonly RunEvent[]) => void = () => {};

  async events(after: number): Promise<readonly RunEvent[]> {
    // As an owner far away: rounds without end leave the test its turn.
    await nextTurn();
    return this.committed.slice(after);
  }

  async *chunks(from: number): AsyncIterable<StoredChunk> {
    this.readFrom.push(from);
    yield* this.stored.filter(({ sequence }) => sequence >= from);
  }

  async lastSequences(): Promise<ReadonlyMap<string, number>> {
    return new Map(this.stored.map(({ runner, sequence }) => [runner, sequence]));
  }

  listen(listeners: Parameters<RunSource['listen']>[0]): () => void {
    this.#onChunk = listeners.onChunk;
    this.#onEvents = listeners.onEvents;
    return () => {};
  }

  /** A chunk that `LOGS` no longer has, and what stood before it neither. */
  hear(gone: StoredChunk, lastSequenceOfSubject: number): void {
    this.#onChunk({ ...gone, lastSequenceOfSubject });
  }

  store(stored: StoredChunk, how: 'heard' | 'missed'): void {
    const before = this.stored.findLast(({ runner }) => runner === stored.runner)?.sequence ?? 0;
    this.stored.push(stored);
    if (how === 'heard') this.#onChunk({ ...stored, lastSequenceOfSubject: before });
  }

  commit(...events: RunEvent[]): void {
    this.committed.push(...events);
    this.#onEvents(this.committed.length - events.length + 1, events);
  }
}

async function watched(run: HeardRun): Promise<Feed> {
  const feed = new Feed(run, silentLog, () => {});
  feeds.push(feed);
  await feed.ask();
  return feed;
}

function emitted({ ring }: Feed): EmittedMessage[] {
  const messages: EmittedMessage[] = [];
  for (let number = 0; number < ring.next; number++) messages.push(...(ring.batch(number)?.messages ?? []));
  return messages;
}

it("FEED-5: a runner's last chunk that was missed while another's later one was heard is found by the next round", async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  run.store(chunk(5, 'a', 'missed\n', { runner: 'r1' }), 'missed');
  run.store(chunk(6, 'b', 'heard\n', { runner: 'r2' }), 'heard');
  await expect.poll(() => outlineOf(emitted(feed))).toContain('b| heard');
  const cut = feed.ring.cursor.copy();
  run.commit(completed('b', 6), completed('a', 7), runCompleted());
  await expect.poll(() => outlineOf(emitted(feed)).at(-1)).toBe('pipeline_completed');
  expect(outlineOf(emitted(feed))).not.toContain('a! [7 bytes of this log are no longer available]');
  // Whoever was cut off before the gap was filled lacks it, and knows that.
  const cursor = Cursor.decode(cut.encode(RUN_ID), RUN_ID);
  const missing = emitted(feed).filter(({ position }) => cursor?.admits(position));
  expect(outlineOf(missing)).toEqual(['stage_completed b', 'a| missed', 'stage_completed a', 'pipeline_completed']);
});

it('a chunk that is heard while what stood before it is gone for good is shown once a round has looked for that', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  run.hear(chunk(6, 'a', 'heard\n', { runner: 'r1' }), 5);
  await expect.poll(() => outlineOf(emitted(feed))).toContain('a| heard');
  run.store(chunk(7, 'a', 'next\n', { runner: 'r1', offset: 6 }), 'heard');
  await expect.poll(() => outlineOf(emitted(feed))).toContain('a| next');
});

it('FEED-5: a round reads nothing where everything that is stored was heard', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  run.store(chunk(5, 'a', 'one\n', { runner: 'r1' }), 'heard');
  run.store(chunk(6, 'b', 'two\n', { runner: 'r2' }), 'heard');
  await feed.ask();
  expect(run.readFrom).toEqual([]);
  run.store(chunk(7, 'a', 'three\n', { runner: 'r1', offset: 4 }), 'missed');
  await feed.ask();
  expect(run.readFrom).toEqual([7]);
});

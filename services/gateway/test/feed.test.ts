import { setImmediate as nextTurn } from 'node:timers/promises';
import { silentLog } from '@penstock/telemetry/log';
import { machineTime, type Time } from '@penstock/async';
import { WATCH_ASK_MS, type LiveChunk, type StoredChunk } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import type { RunEvent } from '@penstock/run';
import { afterEach, expect, it } from 'vitest';
import { Cursor } from '../src/event-stream/cursor.ts';
import type { StreamSink } from '../src/sse/client.ts';
import { Follower } from '../src/sse/follower.ts';
import { Feed } from '../src/sse/feed.ts';
import type { Listening, RunSource } from '../src/sse/run-source.ts';
import {
  chunk,
  completed,
  created,
  type EmittedMessage,
  messagesOf,
  outlineOf,
  runCompleted,
  RUN_ID,
  started,
} from './event-stream-fixtures.ts';

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
  /** Who is asked without proof is one that has been deposed, and has nothing from this sequence on. */
  deposedFrom = Infinity;
  hearsChunks = true;
  isDeleted = false;
  /** So many chunks have come by themselves. */
  heard = 0;
  /** So often it was asked for what is sure to be all. */
  proofs = 0;
  /** Behind which it was asked for the last of each runner. */
  readonly lastAskedAfter: number[] = [];
  /** Called when it is asked for its chunks. */
  whileAsked: () => void = () => {};
  /** Called when it is about to hear chunks again. */
  beforeHearing: () => void = () => {};
  #onChunk: (chunk: LiveChunk) => void = () => {};
  #onEvents: (first: number, events: readonly RunEvent[]) => void = () => {};

  async events(after: number): Promise<readonly RunEvent[]> {
    // As an owner far away: rounds without end leave the test its turn.
    await nextTurn();
    if (this.isDeleted) throw new NotFound('There is no such run.');
    return this.committed.slice(after);
  }

  async *chunks(from: number, _signal: AbortSignal, needsAll = false): AsyncIterable<StoredChunk> {
    this.readFrom.push(from);
    yield* this.#known(needsAll).filter(({ sequence }) => sequence >= from);
  }

  async lastSequences(_signal: AbortSignal, needsAll = false, after = 0): Promise<ReadonlyMap<string, number>> {
    if (needsAll) this.proofs += 1;
    this.lastAskedAfter.push(after);
    this.whileAsked();
    const known = this.#known(needsAll).filter(({ sequence }) => sequence > after);
    return new Map(known.map(({ runner, sequence }) => [runner, sequence]));
  }

  #known(needsAll: boolean): readonly StoredChunk[] {
    return needsAll ? this.stored : this.stored.filter(({ sequence }) => sequence < this.deposedFrom);
  }

  listen(listeners: Parameters<RunSource['listen']>[0]): Listening {
    const hearChunks = (areHeard: boolean): void => {
      if (areHeard) this.beforeHearing();
      this.hearsChunks = areHeard;
    };
    this.#onChunk = (chunk) => {
      this.heard += Number(this.hearsChunks);
      if (this.hearsChunks) listeners.onChunk(chunk);
    };
    this.#onEvents = listeners.onEvents;
    return { hearChunks, stop: () => {} };
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

async function watched(run: HeardRun, time = machineTime): Promise<Feed> {
  const feed = new Feed(run, silentLog, () => {}, { time });
  feeds.push(feed);
  await feed.ask();
  return feed;
}

function emitted({ ring }: Feed): EmittedMessage[] {
  const messages: EmittedMessage[] = [];
  for (let number = 0; number < ring.next; number++) messages.push(...messagesOf(ring.batch(number)?.emissions ?? []));
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
  const missing = emitted(feed).filter(({ position }) => cursor?.emittedOf(position) === 0);
  expect(outlineOf(missing)).toEqual(['stage_completed b', 'a| missed', 'stage_completed a', 'pipeline_completed']);
});

it('FEED-8: what a deposed leader of LOGS does not know is not taken for gone', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  run.deposedFrom = 5;
  run.store(chunk(5, 'a', 'missed\n', { runner: 'r1' }), 'missed');
  run.store(chunk(6, 'a', 'heard\n', { runner: 'r1', offset: 7 }), 'heard');
  await expect.poll(() => outlineOf(emitted(feed))).toContain('a| heard');
  run.store(chunk(7, 'b', 'at the end\n', { runner: 'r2' }), 'missed');
  run.commit(completed('a', 13), completed('b', 11), runCompleted());
  await expect.poll(() => outlineOf(emitted(feed)).at(-1)).toBe('pipeline_completed');
  const lines = outlineOf(emitted(feed)).filter((line) => /^[ab][|!]/.test(line));
  expect(lines).toEqual(['a| missed', 'a| heard', 'b| at the end']);

  const client = new OpenClient();
  expect(await new Follower(client, RUN_ID, new Cursor()).read(run)).toBe('ended');
  expect(client.text).toContain('at the end');
  expect(client.text).not.toContain('no longer available');
});

it('FEED-8: no proof is asked for where an event was heard during a round whose chunk is a moment late', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  run.whileAsked = () => {
    run.whileAsked = () => {};
    run.commit(completed('a', 5));
  };
  await feed.ask();
  run.store(chunk(5, 'a', 'late\n', { runner: 'r1' }), 'heard');
  await expect.poll(() => outlineOf(emitted(feed)).at(-1)).toBe('stage_completed a');
  expect(outlineOf(emitted(feed))).toContain('a| late');
  expect(run.proofs).toBe(0);
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
  // What stands before is not asked for again.
  expect(run.lastAskedAfter.at(-1)).toBe(6);
});

/** What a client that is as quick as the test wants has been sent. */
class HeldClient implements StreamSink {
  readonly closed = new AbortController().signal;
  readonly sent: Buffer[] = [];
  ended = false;
  onRoom: () => void = () => {};
  #writes = 0;

  get hasRoom(): boolean {
    return this.#writes > 0;
  }

  room(): Promise<void> {
    throw new Error('it follows the feed, and reads nothing by itself');
  }

  write(bytes: Uint8Array): void {
    this.sent.push(Buffer.from(bytes));
    this.#writes -= 1;
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.ended = true;
  }

  closeIfStalled(): void {}

  /** Takes so many writes. */
  take(writes: number): void {
    this.#writes = writes;
    this.onRoom();
  }

  get lines(): string[] {
    return [
      ...Buffer.concat(this.sent)
        .toString()
        .matchAll(/"line":"(\d+) /gu),
    ].map(([, line = '']) => line);
  }
}

/** One that takes whatever there is. */
class OpenClient extends HeldClient {
  override get hasRoom(): boolean {
    return true;
  }

  override room(): Promise<void> {
    return Promise.resolve();
  }

  get text(): string {
    return Buffer.concat(this.sent).toString();
  }
}

it('FEED-6: output that is faster than every client waits where it is stored, and is read once, by one client after the other', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  const quick = new HeldClient();
  const slow = new HeldClient();
  for (const client of [quick, slow]) expect(feed.join(new Follower(client, RUN_ID, new Cursor()))).toBe(true);
  const size = 60_000;
  const count = 400;
  for (let index = 0; index < count; index += 1) {
    run.store(chunk(index + 1, 'a', `${index} `.padEnd(size - 1, 'x') + '\n', { offset: index * size }), 'heard');
    await nextTurn();
  }
  run.commit(completed('a', count * size), completed('b', 0), runCompleted());
  // 24 MB were stored, and some 4 of them are kept for clients that have taken nothing yet.
  expect(feed.ring.sizeFrom(0)).toBeLessThan(8_000_000);
  expect(feed.ring.sizeFrom(0)).toBeGreaterThan(2_000_000);
  while (!quick.ended) {
    quick.take(1);
    await nextTurn();
    expect(feed.ring.sizeFrom(0)).toBeLessThan(12_000_000);
  }
  expect(quick.lines).toEqual(Array.from({ length: count }, (_, index) => String(index)));
  // Each piece is read where the one before it ended: nothing is read twice.
  expect(run.readFrom).toEqual([...new Set(run.readFrom)]);
  expect(run.readFrom.length).toBeLessThan(20);
  expect(slow.ended).toBe(false);
});

/** Without pings, which find whatever was missed. */
const pingless: Time = {
  ...machineTime,
  after: (milliseconds, task) => (milliseconds === WATCH_ASK_MS ? () => {} : machineTime.after(milliseconds, task)),
};

it.each([
  { meanwhile: 'nothing is stored', most: 0 },
  { meanwhile: 'much is stored', most: 400 },
])(
  'FEED-7: a feed that is behind hears no chunks until it has read all there are, while $meanwhile',
  async ({ most }) => {
    const run = new HeardRun();
    const feed = await watched(run, pingless);
    const client = new HeldClient();
    expect(feed.join(new Follower(client, RUN_ID, new Cursor()))).toBe(true);
    const size = 60_000;
    let count = 0;
    const store = (how: 'heard' | 'missed'): void => {
      const text = `${count} `.padEnd(size - 1, 'x');
      run.store(chunk(count + 1, 'a', `${text}\n`, { offset: count * size }), how);
      count += 1;
    };
    while (run.hearsChunks) {
      store('heard');
      await nextTurn();
    }
    const { heard } = run;
    // Not for a round of asking in which nothing is missing: its clients have no room yet.
    await feed.ask();
    expect(run.hearsChunks).toBe(false);
    while (count < most / 2) store('heard');
    expect(run.heard).toBe(heard);
    // What is stored between the end of a reading and the moment at which it listens again is not lost, also where nothing follows it.
    run.beforeHearing = () => store('missed');
    while (!run.hearsChunks || client.lines.length < count) {
      client.take(1);
      await nextTurn();
      if (!run.hearsChunks && count < most) store('missed');
    }
    store('heard');
    expect(run.heard).toBe(heard + 1);
    while (client.lines.length < count) {
      client.take(1);
      await nextTurn();
    }
    expect(client.lines).toEqual(Array.from({ length: count }, (_, index) => String(index)));
  },
);

it('FEED-9: a client that takes little is told that it has the past behind the last of it, and not behind what has come since', async () => {
  const run = new HeardRun();
  run.store(chunk(5, 'a', '1 past\n', { runner: 'r1' }), 'missed');
  const feed = await watched(run);
  const client = new HeldClient();
  const follower = new Follower(client, RUN_ID, new Cursor());
  expect(feed.join(follower)).toBe(true);
  run.store(chunk(6, 'a', '2 past\n', { runner: 'r1', offset: 7 }), 'missed');
  await feed.tellPast(follower);
  run.store(chunk(7, 'a', '3 since\n', { runner: 'r1', offset: 14 }), 'heard');
  await expect.poll(() => outlineOf(emitted(feed))).toContain('a| 3 since');
  const told = (): boolean => Buffer.concat(client.sent).includes(': caught up');
  while (!told()) client.take(1);
  expect(client.lines).toEqual(['1', '2']);
});

it('FEED-6: goes on for the others when its quickest client is gone', async () => {
  const run = new HeardRun();
  const feed = await watched(run);
  const held = new Follower(new HeldClient(), RUN_ID, new Cursor());
  expect(feed.join(held)).toBe(true);
  const size = 60_000;
  for (let index = 0; index < 200; index += 1) {
    run.store(chunk(index + 1, 'a', `${index} `.padEnd(size - 1, 'x') + '\n', { offset: index * size }), 'heard');
    await nextTurn();
  }
  expect(outlineOf(emitted(feed)).length).toBeLessThan(200);
  feed.leave(held);
  await expect.poll(() => feed.ring.cursor.runners.get(0)?.sequence).toBe(200);
});

it('FEED-10: sends its clients away where the run was deleted before its end was heard', async () => {
  const run = new HeardRun();
  let over = 0;
  const feed = new Feed(run, silentLog, () => (over += 1));
  feeds.push(feed);
  await feed.ask();
  const client = new HeldClient();
  expect(feed.join(new Follower(client, RUN_ID, new Cursor()))).toBe(true);
  run.isDeleted = true;
  await feed.ask();
  expect([client.ended, over]).toEqual([true, 1]);
});

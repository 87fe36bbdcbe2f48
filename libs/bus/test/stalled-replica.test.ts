/** Reads of a stream of which one copy stands still: its server is handed requests, and answers none. */
import { headers } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { directBatch } from '../src/jetstream/stored.ts';
import { RequestTimeout } from '../src/contract/errors.ts';
import type { WireMessage } from '../src/wire/short-way.ts';
import type { Wire } from '../src/wire/wire.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** `stalls`: whether what is asked in this place is handed to the copy that stands still. */
function brokerOf({ cluster, stalls }: { cluster?: string; stalls(asked: number): boolean }) {
  const broker = { asked: 0, open: 0, answersInMs: 5 };
  const exchange: Wire['exchange'] = (subject, _payload, _headers, timeoutMs, onMessage, onEnd) => {
    broker.asked += 1;
    broker.open += 1;
    let isOver = false;
    const finish = (error: Error | null): void => {
      if (isOver) return;
      isOver = true;
      broker.open -= 1;
      clearTimeout(timer);
      onEnd(error);
    };
    const timer = setTimeout(() => finish(new RequestTimeout(subject, timeoutMs)), timeoutMs);
    const handle = { done: () => finish(null), fail: finish, touch: () => void timer.refresh() };
    if (!stalls(broker.asked))
      setTimeout(() => {
        const ended = { data: new Uint8Array(), headers: headers(204, 'EOB') };
        if (!isOver) onMessage(ended as unknown as WireMessage, handle);
      }, broker.answersInMs);
    return handle;
  };
  const wire = { exchange, connection: { info: { cluster } } } as unknown as Wire;
  return { broker, read: () => directBatch(wire, 'LOGS', { seq: 1, batch: 1 }, 5_000) };
}

it('is answered by another copy, soon, and nothing is left open', async () => {
  const { broker, read } = brokerOf({ cluster: 'penstock', stalls: (asked) => asked <= 2 });
  const answer = read();
  await vi.advanceTimersByTimeAsync(1_500);
  await expect(answer).resolves.toEqual([]);
  expect(broker).toMatchObject({ asked: 3, open: 0 });
});

it('is asked once where an answer comes, or there is one server', async () => {
  const sound = brokerOf({ cluster: 'penstock', stalls: () => false });
  const answer = sound.read();
  await vi.advanceTimersByTimeAsync(2_000);
  await expect(answer).resolves.toEqual([]);
  const alone = brokerOf({ stalls: () => true });
  await Promise.all([expect(alone.read()).rejects.toThrow(RequestTimeout), vi.advanceTimersByTimeAsync(6_000)]);
  expect([sound.broker, alone.broker]).toMatchObject([
    { asked: 1, open: 0 },
    { asked: 1, open: 0 },
  ]);
});

it('ends where no copy answers, after a few questions', async () => {
  const { broker, read } = brokerOf({ cluster: 'penstock', stalls: () => true });
  await Promise.all([expect(read()).rejects.toThrow(RequestTimeout), vi.advanceTimersByTimeAsync(7_200)]);
  expect(broker).toMatchObject({ asked: 4, open: 0 });
});

it('a broker whose answers are all late is not asked four times by each reader, and is again once they are prompt', async () => {
  const { broker, read } = brokerOf({ cluster: 'penstock', stalls: (asked) => asked > 1_000 });
  const readMany = async (reads: number): Promise<number> => {
    const before = broker.asked;
    const answers = Promise.allSettled(Array.from({ length: reads }, read));
    await vi.advanceTimersByTimeAsync(12_000);
    await answers;
    return broker.asked - before;
  };
  broker.answersInMs = 4_000;
  expect(await readMany(100)).toBeLessThanOrEqual(120);
  expect(await readMany(100)).toBe(100);
  broker.answersInMs = 5;
  expect(await readMany(10)).toBe(10);
  broker.asked = 1_000;
  expect(await readMany(1)).toBe(4);
});

/** Waiting for the end of a run, with every message in the hands of the test. */
import { WATCH_ASK_MS, type Bus, type CommittedEvents } from '@penstock/bus';
import { newRunId, type RunEvent, type RunView } from '@penstock/run';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { waitForRunEnd, type Owners, type RunReads } from '../src/index.ts';

const RUN = newRunId({ now: 0, key: 'k', random: new Uint8Array(8) });

let status: RunView['status'];
let asked: number;
let opened: () => void;
let happened: (message: Partial<CommittedEvents>) => void;
beforeEach(() => {
  vi.useFakeTimers();
  status = 'RUNNING';
  asked = 0;
  opened = () => {};
});
afterEach(() => void vi.useRealTimers());

/** Epochs below 2 are over. */
function waiting(): ReturnType<typeof waitForRunEnd> {
  const owners = {
    partitionOf: () => 0,
    accepts: (_partition: number, epoch: number) => epoch >= 2,
    onAskAgain: (_partition: number, listener: () => void) => {
      opened = listener;
      return () => {};
    },
  };
  const reads = {
    view: () => {
      asked += 1;
      return Promise.resolve({ status } as RunView);
    },
  };
  const bus = {
    subscribe: (_subject: string, handler: typeof happened) => {
      happened = handler;
      return { stop: () => {} };
    },
  };
  return waitForRunEnd(
    { bus: bus as unknown as Bus, owners: owners as unknown as Owners, reads: reads as unknown as RunReads },
    RUN,
    'ada',
  );
}

describe('waiting for the end of a run whose last event is lost (P20)', () => {
  it('asks its owner every 15 s', async () => {
    const wait = waiting();
    const outcome = wait.until(60_000, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(WATCH_ASK_MS);
    status = 'SUCCESS';
    await vi.advanceTimersByTimeAsync(WATCH_ASK_MS - 1);
    expect(asked).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect([asked, await outcome]).toEqual([2, 'ended']);
    wait.stop();
  });

  it('asks a new owner within half a second', async () => {
    const wait = waiting();
    const outcome = wait.until(60_000, new AbortController().signal);
    status = 'SUCCESS';
    opened();
    await vi.advanceTimersByTimeAsync(500);
    expect([asked, await outcome]).toEqual([1, 'ended']);
    wait.stop();
  });

  it('goes on waiting where its owner says that the run still goes on', async () => {
    const wait = waiting();
    const outcome = wait.until(3 * WATCH_ASK_MS, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(3 * WATCH_ASK_MS);
    expect(asked).toBeGreaterThanOrEqual(2);
    expect(await outcome).toBe('not ended');
    wait.stop();
  });
});

it('an end counts that the owner of now has committed, and no other event, nor the end that an earlier owner tells of (P4)', async () => {
  const wait = waiting();
  let outcome: string | undefined;
  void wait.until(60_000, new AbortController().signal).then((ended) => (outcome = ended));
  const end: RunEvent = { type: 'run_completed', at: 0, status: 'SUCCESS' };
  happened({ epoch: 2, events: [{ type: 'stages_queued', at: 0, stages: [] } as RunEvent] });
  happened({ epoch: 1, events: [end] });
  await vi.advanceTimersByTimeAsync(1);
  expect(outcome).toBeUndefined();
  happened({ epoch: 2, events: [end] });
  await vi.advanceTimersByTimeAsync(1);
  expect(outcome).toBe('ended');
  wait.stop();
});

import { STOPS_KEPT_MS } from '@penstock/bus';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StopMemory } from '../src/session/stop-memory.ts';

const ref = { runId: 'run', stage: 'build', attempt: 1, session: 's', credit: 4 };

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

describe('the stops that a runner remembers (P14)', () => {
  it('are known for a minute, each for its very attempt', () => {
    const stops = new StopMemory();
    stops.remember(ref);
    expect(stops.has({ ...ref })).toBe(true);
    expect(stops.has({ ...ref, credit: 5 })).toBe(false);
    expect(stops.has({ ...ref, attempt: 2 })).toBe(false);
    vi.advanceTimersByTime(STOPS_KEPT_MS - 1);
    expect(stops.has(ref)).toBe(true);
    vi.advanceTimersByTime(1);
    expect(stops.has(ref)).toBe(false);
  });

  it('are known for a minute after they were said for the last time', () => {
    const stops = new StopMemory();
    stops.remember(ref);
    vi.advanceTimersByTime(STOPS_KEPT_MS / 2);
    stops.remember(ref);
    vi.advanceTimersByTime(STOPS_KEPT_MS / 2);
    expect(stops.has(ref)).toBe(true);
  });
});

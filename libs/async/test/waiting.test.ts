import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pause, pauseOrAbort, unlessAborted, within } from '../src/index.ts';

const never = (): Promise<never> => Promise.withResolvers<never>().promise;
const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

describe('a pause', () => {
  it('ends when its time is over', async () => {
    await expect(pause(1, new AbortController().signal)).resolves.toBeUndefined();
  });

  it("throws the signal's reason when that aborts, before or during it", async () => {
    const reason = new Error('told to stop');
    await expect(pause(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
    const stop = new AbortController();
    const paused = pause(60_000, stop.signal);
    stop.abort(reason);
    await expect(paused).rejects.toBe(reason);
  });

  it('ends without an error where the caller looks at the signal itself', async () => {
    const stop = new AbortController();
    const paused = pauseOrAbort(60_000, stop.signal);
    stop.abort();
    await expect(paused).resolves.toBeUndefined();
    await expect(pauseOrAbort(60_000, stop.signal)).resolves.toBeUndefined();
    expect(listenersOf(stop.signal)).toBe(0);
  });
});

describe('waiting within a time', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('gives what the work gives, and leaves neither a timer nor a listener', async () => {
    const { signal } = new AbortController();
    expect(await within(1_000, Promise.resolve(7), () => 'late', signal)).toBe(7);
    expect([vi.getTimerCount(), listenersOf(signal)]).toEqual([0, 0]);
  });

  it('throws what the work throws', async () => {
    const reason = new Error('broken');
    await expect(within(1_000, Promise.reject(reason), () => 'late')).rejects.toBe(reason);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('gives the late value when the time is over', async () => {
    const waited = within(1_000, never(), () => 'late');
    vi.advanceTimersByTime(1_000);
    expect(await waited).toBe('late');
  });

  it('throws the late error when the time is over', async () => {
    const waited = within(1_000, never(), () => {
      throw new Error('no answer');
    });
    vi.advanceTimersByTime(1_000);
    await expect(waited).rejects.toThrow('no answer');
  });

  it('is late when the signal aborts, before or during the wait', async () => {
    const stop = new AbortController();
    const waited = within(1_000, never(), () => 'late', stop.signal);
    stop.abort();
    expect(await waited).toBe('late');
    expect(await within(1_000, never(), () => 'late', stop.signal)).toBe('late');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves work behind that fails later, without an unhandled rejection', async () => {
    const { promise, reject } = Promise.withResolvers<void>();
    const waited = within(1_000, promise, () => 'late');
    vi.advanceTimersByTime(1_000);
    expect(await waited).toBe('late');
    const unhandled = vi.fn<() => void>();
    process.once('unhandledRejection', unhandled);
    reject(new Error('too late'));
    vi.useRealTimers();
    await pause(1);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe('work unless a signal aborts', () => {
  it('gives what the work gives, with and without a signal', async () => {
    const { signal } = new AbortController();
    expect(await unlessAborted(Promise.resolve(7), signal)).toBe(7);
    expect(await unlessAborted(Promise.resolve(7), undefined)).toBe(7);
    expect(listenersOf(signal)).toBe(0);
  });

  it("throws the signal's reason when that aborts, before or during it", async () => {
    const reason = new Error('given up');
    await expect(unlessAborted(Promise.resolve(), AbortSignal.abort(reason))).rejects.toBe(reason);
    // Its failure would end the process, were it nobody's.
    await expect(unlessAborted(Promise.reject(new Error('late')), AbortSignal.abort(reason))).rejects.toBe(reason);
    const stop = new AbortController();
    const waited = unlessAborted(never(), stop.signal);
    stop.abort(reason);
    await expect(waited).rejects.toBe(reason);
  });
});

import { uptime } from 'node:os';
import { describe, expect, it } from 'vitest';
import { bootClock, bootMs } from '../src/index.ts';

describe('the boot clock', () => {
  it('goes on through a suspension, in which the monotonic clock stands still', () => {
    const sources = { monotonic: 1_000, uptime: 5_000 };
    const clock = bootClock({ monotonicMs: () => sources.monotonic, uptimeMs: () => sources.uptime });
    expect(clock()).toBe(5_000);
    sources.monotonic += 60;
    sources.uptime += 60 + 3_600_000;
    expect(clock()).toBe(3_605_060);
  });

  it('never goes back, though the coarse clock is behind at a look', () => {
    const sources = { monotonic: 1_000, uptime: 5_000 };
    const clock = bootClock({ monotonicMs: () => sources.monotonic, uptimeMs: () => sources.uptime });
    clock();
    sources.monotonic += 60;
    sources.uptime += 50;
    expect(clock()).toBe(5_060);
  });

  it("is the machine's uptime", () => {
    expect(Math.abs(bootMs() - uptime() * 1000)).toBeLessThan(1_000);
  });
});

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

  it('is never ahead of the machine, though the process stands still in the midst of a look', () => {
    const machine = { at: 5_000, standsStillMs: 0 };
    const clock = bootClock({
      monotonicMs: () => machine.at - 4_000,
      uptimeMs() {
        const at = machine.at;
        machine.at += machine.standsStillMs;
        return at;
      },
    });
    const ahead = (): number => clock() - machine.at;
    expect(ahead()).toBe(0);
    for (const standsStillMs of [42, 60_000, 0]) {
      Object.assign(machine, { at: machine.at + 60, standsStillMs });
      expect(ahead()).toBe(0);
    }
    // The other order of the two looks, which is as likely.
    const other = { at: 5_000, standsStillMs: 0 };
    const second = bootClock({
      uptimeMs: () => other.at,
      monotonicMs() {
        const at = other.at;
        other.at += other.standsStillMs;
        return at - 4_000;
      },
    });
    for (const standsStillMs of [42, 60_000, 0]) {
      Object.assign(other, { at: other.at + 60, standsStillMs });
      expect(second() - other.at).toBeLessThanOrEqual(0);
    }
  });

  it("is the machine's uptime", () => {
    expect(Math.abs(bootMs() - uptime() * 1000)).toBeLessThan(1_000);
  });
});

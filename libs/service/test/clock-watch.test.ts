import type { ClockDifference } from '@penstock/bus';
import { Metrics, metricsText } from '@penstock/telemetry/metrics';
import { describe, expect, it } from 'vitest';
import { ClockWatch } from '../src/clock-watch.ts';

const HOUR_MS = 3_600_000;

function watched() {
  const told: string[] = [];
  const meter = new Metrics({ process: false });
  let next: ClockDifference | null | Error = null;
  const note = (_fields: unknown, text: string) => void told.push(text);
  const watch = new ClockWatch({
    ask: () => (next instanceof Error ? Promise.reject(next) : Promise.resolve(next)),
    log: { info: note, warn: note },
    meter,
  });
  return {
    told,
    async look(found: number | null | Error, withinMs = 1): Promise<void> {
      next = typeof found === 'number' ? { aheadMs: found, withinMs } : found;
      await watch.look();
    },
    figures: async () => (await metricsText([await meter.snapshot()], undefined)).body,
  };
}

describe("a clock that is not the broker's", () => {
  it('is told of once, by how much and to which side, and so is its end', async () => {
    const { told, look } = watched();
    await look(20);
    expect(told).toEqual([]);
    await look(HOUR_MS);
    await look(HOUR_MS + 900);
    expect(told).toEqual([expect.stringContaining("is 3600 s ahead of the broker's: set both right (NTP)")]);
    await look(-4_000);
    await look(3_000);
    expect(told.slice(1)).toEqual([expect.stringContaining('agree again')]);
    await look(-HOUR_MS);
    expect(told.at(-1)).toContain("is 3600 s behind the broker's");
  });

  it('is told of again where it is off by something else', async () => {
    const { told, look } = watched();
    await look(HOUR_MS);
    await look(-HOUR_MS);
    await look(-2 * HOUR_MS);
    expect(told.map((line) => /is (\d+ s \w+)/u.exec(line)?.[1])).toEqual([
      '3600 s ahead',
      '3600 s behind',
      '7200 s behind',
    ]);
  });

  it('is not told of where a slow answer may be all of it', async () => {
    const { told, look } = watched();
    await look(6_000, 2_000);
    expect(told).toEqual([]);
    await look(7_500, 2_000);
    expect(told).toHaveLength(1);
  });

  it('is not said to be right again by a slow answer that leaves it open', async () => {
    const { told, look } = watched();
    await look(6_000);
    await look(4_000, 2_000);
    await look(6_000);
    expect(told).toEqual([expect.stringContaining('is 6 s ahead')]);
  });

  it('has a figure once it is known, which stays while the broker is away', async () => {
    const { look, figures, told } = watched();
    await look(null);
    expect(await figures()).not.toMatch(/^penstock_clock_ahead_seconds /mu);
    await look(-1_500);
    await look(new Error('the broker is away'));
    expect(await figures()).toContain('penstock_clock_ahead_seconds -1.5');
    expect(told).toEqual([]);
  });
});

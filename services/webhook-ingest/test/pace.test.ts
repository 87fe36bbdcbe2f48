/** PROCESSING-5, PROCESSING-6: how the processing gives way. */
import { describe, expect, it } from 'vitest';
import { Pace } from '../src/processing/pace.ts';

const NOBODY = { isIntakeBusy: false, areRunsAsked: false };
const PUSHES = { isIntakeBusy: true, areRunsAsked: true };
const RUNS = { isIntakeBusy: false, areRunsAsked: true };

function paceAfter(tookMs: number): { readonly pace: Pace; pass(ms: number): void } {
  let now = 1_000;
  const pace = new Pace(() => now);
  expect(pace.next(NOBODY)).toBe(0);
  pace.took(tookMs);
  return { pace, pass: (ms) => (now += ms) };
}

/** By `giveWay`, after a delivery that took 10 ms. */
async function waitedWhile(others: (passedMs: number) => typeof NOBODY): Promise<number> {
  const { pace, pass } = paceAfter(10);
  let passedMs = 0;
  await pace.giveWay(() => others(passedMs), {
    pause: async (ms) => {
      passedMs += ms;
      pass(ms);
    },
    isOver: () => false,
  });
  return passedMs;
}

describe('deliveries are begun', () => {
  it('twenty times as far apart as the last one took while pushes come fast, and never more than a second', () => {
    expect(paceAfter(10).pace.next(PUSHES)).toBe(200);
    expect(paceAfter(500).pace.next(PUSHES)).toBe(1_000);
  });

  it('twice as far apart as that while runs are asked for otherwise, and little where one waited for its host', () => {
    expect(paceAfter(10).pace.next(RUNS)).toBe(20);
    expect(paceAfter(2_000).pace.next(RUNS)).toBe(100);
  });

  it('apart from each other also where several lanes have one at the same time', () => {
    const { pace } = paceAfter(10);
    expect([pace.next(RUNS), pace.next(RUNS), pace.next(RUNS)]).toEqual([20, 40, 60]);
    expect(pace.next(NOBODY)).toBe(0);
  });

  it('at once where that time has passed already: a push that comes alone is not kept waiting', () => {
    const { pace, pass } = paceAfter(10);
    pass(5);
    expect(pace.next(RUNS)).toBe(15);
    pass(100);
    expect(pace.next(RUNS)).toBe(0);
  });

  it('at once where nobody else wants anything', () => {
    expect(paceAfter(10).pace.next(NOBODY)).toBe(0);
  });

  it('once nobody else wants anything any more: a rest for a burst of pushes does not outlast it', async () => {
    expect(await waitedWhile((passedMs) => (passedMs < 60 ? PUSHES : NOBODY))).toBe(75);
    expect(await waitedWhile(() => PUSHES)).toBe(200);
    expect(await waitedWhile(() => RUNS)).toBe(20);
    expect(await waitedWhile(() => NOBODY)).toBe(0);
  });

  it('within a second of the last one however many bursts there were, whose rests were cut short', async () => {
    let [now, burstMs] = [1_000, 0];
    const pace = new Pace(() => now);
    pace.next(NOBODY);
    pace.took(500);
    const rest = async (): Promise<number> => {
      const from = now;
      await pace.giveWay(() => (now - from < burstMs ? PUSHES : NOBODY), {
        pause: async (ms) => void (now += ms),
        isOver: () => false,
      });
      return now - from;
    };
    for (burstMs = 400; now < 6_000;) expect(await rest()).toBe(400);
    burstMs = 60_000;
    expect(await rest()).toBe(1_000);
  });

  it('as runs that are asked for have it, once pushes come no more', async () => {
    expect(await waitedWhile((passedMs) => (passedMs < 50 ? PUSHES : RUNS))).toBe(150);
  });
});

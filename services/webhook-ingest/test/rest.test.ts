/** PROCESSING-5, PROCESSING-6: how the processing gives way. */
import { describe, expect, it } from 'vitest';
import { restMs, type Last } from '../src/processing/rest.ts';

function justNow(tookMs: number): Last {
  return { tookMs, endedMsAgo: 0 };
}

describe('after a delivery the processing', () => {
  it('rests for most of the time while pushes come fast, and never for more than a second', () => {
    expect(restMs(justNow(10), { isIntakeBusy: true, areRunsAsked: false })).toBe(190);
    expect(restMs(justNow(500), { isIntakeBusy: true, areRunsAsked: true })).toBe(1_000);
  });

  it('rests for as long as that took while runs are asked for otherwise, and little after one that waited for its host', () => {
    expect(restMs(justNow(10), { isIntakeBusy: false, areRunsAsked: true })).toBe(10);
    expect(restMs(justNow(2_000), { isIntakeBusy: false, areRunsAsked: true })).toBe(50);
  });

  it('goes on at once where nobody else wants anything', () => {
    expect(restMs(justNow(10), { isIntakeBusy: false, areRunsAsked: false })).toBe(0);
  });

  it('has rested already for the time since then: a push that comes alone is not kept waiting', () => {
    const runsAsked = { isIntakeBusy: false, areRunsAsked: true };
    expect(restMs({ tookMs: 20, endedMsAgo: 5 }, runsAsked)).toBe(15);
    expect(restMs({ tookMs: 20, endedMsAgo: 60 }, runsAsked)).toBe(0);
    expect(restMs({ tookMs: 10, endedMsAgo: 100 }, { isIntakeBusy: true, areRunsAsked: false })).toBe(90);
  });
});

/** PROCESSING-5, PROCESSING-6: how the processing gives way. */
import { describe, expect, it } from 'vitest';
import { restMs } from '../src/processing/rest.ts';

describe('after a delivery the processing', () => {
  it('rests for most of the time while pushes come fast, and never for more than a second', () => {
    expect(restMs(10, { isIntakeBusy: true, areRunsAsked: false })).toBe(190);
    expect(restMs(500, { isIntakeBusy: true, areRunsAsked: true })).toBe(1_000);
  });

  it('rests for as long as that took while runs are asked for otherwise, and little after one that waited for its host', () => {
    expect(restMs(10, { isIntakeBusy: false, areRunsAsked: true })).toBe(10);
    expect(restMs(2_000, { isIntakeBusy: false, areRunsAsked: true })).toBe(50);
  });

  it('goes on at once where nobody else wants anything', () => {
    expect(restMs(10, { isIntakeBusy: false, areRunsAsked: false })).toBe(0);
  });
});

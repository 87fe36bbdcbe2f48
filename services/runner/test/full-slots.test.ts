import { silentLog } from '@penstock/telemetry/log';
import { describe, expect, it } from 'vitest';
import { FullSlots } from '../src/session/full-slots.ts';

const MINUTE_MS = 60_000;
const FULL = { slots: 2, busy: 2, isAsked: true };

function watched(): { readonly slots: FullSlots; readonly told: unknown[] } {
  const told: unknown[] = [];
  return { slots: new FullSlots({ ...silentLog, warn: (fields) => void told.push(fields) }), told };
}

describe('slots that are all taken', () => {
  it('are told of when that has lasted and stages wait, and again after an hour of it', () => {
    const { slots, told } = watched();
    for (let minute = 0; minute <= 64; minute += 1) slots.look(FULL, minute * MINUTE_MS);
    expect(told).toEqual([{ slots: 2, forSecs: 300 }]);
    slots.look(FULL, 65 * MINUTE_MS);
    expect(told).toHaveLength(2);
  });

  it.each([
    ['one was free', { slots: 2, busy: 1, isAsked: true }],
    ['no stage waited', { slots: 2, busy: 2, isAsked: false }],
    ['the disk took none', { slots: 0, busy: 2, isAsked: true }],
  ])('are not where %s meanwhile', (_what, between) => {
    const { slots, told } = watched();
    for (const [minute, now] of [FULL, FULL, FULL, FULL, between, FULL, FULL, FULL, FULL, FULL].entries())
      slots.look(now, minute * MINUTE_MS);
    expect(told).toEqual([]);
  });
});

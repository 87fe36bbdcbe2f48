import { CREDIT_MS } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { Credits } from '../src/session/credits.ts';

describe('the credits of a session (P11)', () => {
  it('are taken once each, and no number comes twice', () => {
    const credits = new Credits(() => 0);
    const first = credits.issue('s1');
    const second = credits.issue('s2');
    expect(second).not.toBe(first);
    expect([credits.take(first), credits.take(first), credits.take(second)]).toEqual(['s1', null, 's2']);
    expect([first, second]).not.toContain(credits.issue('s1'));
  });

  it('are over when they are 30 s old by the boot clock, though nobody has looked at them meanwhile', () => {
    let now = 1_000;
    const credits = new Credits(() => now);
    const young = credits.issue('s1');
    const old = credits.issue('s1');
    now += CREDIT_MS - 1;
    expect([credits.isOpen(young), credits.isOpen(old)]).toEqual([true, true]);
    expect(credits.take(young)).toBe('s1');
    now += 1;
    expect([credits.isOpen(young), credits.isOpen(old)]).toEqual([false, false]);
    expect(credits.take(old)).toBeNull();
  });

  it('are over no later where the clock by which they were issued was behind', () => {
    let now = CREDIT_MS;
    const credits = new Credits(
      () => now,
      () => now - 50,
    );
    const credit = credits.issue('s1');
    now += CREDIT_MS - 51;
    expect(credits.isOpen(credit)).toBe(true);
    now += 1;
    expect(credits.isOpen(credit)).toBe(false);
  });
});

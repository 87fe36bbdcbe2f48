/** What waits at other schedulers, for who would leave slots to it. */
import { expect, it } from 'vitest';
import { WaitingElsewhere } from '../src/dispatch/waiting-elsewhere.ts';

const gpu = { labels: new Set(['linux', 'gpu']) };
const plain = { labels: new Set(['linux']) };

it('wants a slot only where the session has all labels of something that waits', () => {
  const elsewhere = new WaitingElsewhere();
  expect(elsewhere.wants(gpu)).toBe(false);
  elsewhere.announced('other', [['mac'], ['gpu', 'linux']], 0);
  expect([elsewhere.wants(gpu), elsewhere.wants(plain)]).toEqual([true, false]);
});

it('goes by the last announcement of each scheduler', () => {
  const elsewhere = new WaitingElsewhere();
  elsewhere.announced('a', [['gpu']], 0);
  elsewhere.announced('b', [['linux']], 0);
  elsewhere.announced('a', [['mac']], 1);
  expect([elsewhere.wants(gpu), elsewhere.wants(plain)]).toEqual([true, true]);
  elsewhere.announced('b', [['mac']], 1);
  expect([elsewhere.wants(gpu), elsewhere.wants(plain)]).toEqual([false, false]);
});

it('says that what was left to a scheduler is free where less waits there than before', () => {
  const elsewhere = new WaitingElsewhere();
  expect(elsewhere.announced('other', [['gpu', 'linux'], ['mac']], 0)).toBe(false);
  expect(elsewhere.announced('third', [['linux']], 0)).toBe(false);
  expect(elsewhere.announced('other', [['mac'], ['gpu', 'linux'], ['arm']], 0)).toBe(false);
  expect(elsewhere.announced('other', [['mac'], ['linux']], 0)).toBe(true);
  expect(elsewhere.announced('other', [['mac'], ['linux']], 0)).toBe(false);
});

it('says once that what was left to a scheduler is free: nothing waits there any more', () => {
  const elsewhere = new WaitingElsewhere();
  expect(elsewhere.announced('other', [], 0)).toBe(false);
  expect(elsewhere.announced('other', [[]], 0)).toBe(false);
  expect(elsewhere.announced('other', [], 1)).toBe(true);
  expect(elsewhere.announced('other', [], 2)).toBe(false);
  expect(elsewhere.wants(plain)).toBe(false);
});

it('ELSEWHERE-1: forgets who has been silent for three seconds, and nobody who goes on announcing', () => {
  const elsewhere = new WaitingElsewhere();
  elsewhere.announced('silent', [['gpu']], 0);
  elsewhere.announced('alive', [['linux']], 0);
  elsewhere.announced('alive', [['linux']], 1_000);
  expect(elsewhere.forgetOld(2_999)).toBe(false);
  expect(elsewhere.forgetOld(3_000)).toBe(true);
  expect(elsewhere.forgetOld(3_000)).toBe(false);
  expect(elsewhere.wants(plain)).toBe(true);
  expect(elsewhere.forgetOld(4_000)).toBe(true);
  expect(elsewhere.wants(gpu)).toBe(false);
});

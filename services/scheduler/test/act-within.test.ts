/** How long an owner is sure to be it (P4): by the time at which its last accepted renewal was sent, and by nothing else. */
import { ACT_WITHIN_MS } from '@penstock/bus';
import { SchedulerMembership } from '@penstock/scheduler/testing';
import { expect, it } from 'vitest';

it('P4: a member may act until 4 s after its last accepted renewal was sent, and not a moment longer', async () => {
  const clock = { now: 1_000 };
  const over = new AbortController();
  const membership = new SchedulerMembership({
    ports: {
      bootNow: () => clock.now,
      newId: () => 'me',
      // No renewal comes in the time of this test.
      pause: (_milliseconds, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
      acquire: async () => ({
        sentAtMs: 1_000,
        renew: () => Promise.reject(new Error('nobody renews')),
        release: async () => over.abort(),
      }),
    },
    ttlMs: 6_000,
    log: { warn: () => {} },
    joined: () => {},
    lost: () => {},
  });
  expect(membership.mayAct()).toBe(false);
  await membership.join();
  expect(ACT_WITHIN_MS).toBe(4_000);
  clock.now += 3_999;
  expect(membership.mayAct()).toBe(true);
  clock.now += 1;
  expect(membership.mayAct()).toBe(false);
  await membership.leave();
  expect(over.signal.aborted).toBe(true);
});

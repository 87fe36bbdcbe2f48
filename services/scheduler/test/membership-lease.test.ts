/** A membership whose lease and clock are in the hands of the test. */
import { ACT_WITHIN_MS, MEMBERSHIP_MS, MEMBERSHIP_RENEWALS, type Lease } from '@penstock/bus';
import { SchedulerMembership } from '@penstock/scheduler/testing';
import { beforeEach, describe, expect, it } from 'vitest';

type Renewal = Awaited<ReturnType<Lease['renew']>>;

let boot: number;
let sentAtMs: number;
let renewals: Renewal[];
let members: string[];
let lost: number;
/** How long it was to wait, and how to end that. */
let pauses: { readonly milliseconds: number; readonly over: () => void }[];

beforeEach(() => {
  boot = 1_000_000;
  sentAtMs = boot;
  renewals = [];
  members = [];
  lost = 0;
  pauses = [];
});

function membership(): SchedulerMembership {
  let ids = 0;
  return new SchedulerMembership({
    ttlMs: MEMBERSHIP_MS,
    log: { warn: () => {} },
    joined: (member) => members.push(member),
    lost: () => (lost += 1),
    ports: {
      bootNow: () => boot,
      newId: () => `member-${++ids}`,
      pause: (milliseconds, signal) =>
        new Promise((over) => {
          pauses.push({ milliseconds, over });
          signal.addEventListener('abort', () => over(), { once: true });
        }),
      acquire: () =>
        Promise.resolve({
          get sentAtMs() {
            return sentAtMs;
          },
          renew: () => Promise.resolve(renewals.shift() ?? { kind: 'unanswered', cause: new Error('away') }),
          release: () => Promise.resolve(),
        }),
    },
  });
}

/** The next renewal is made, and its answer taken. */
async function renewed(): Promise<void> {
  pauses.shift()?.over();
  await expect.poll(() => pauses.length).toBe(1);
}

describe('a membership', () => {
  it('P4: may act for less than 4 s after its last accepted renewal was sent, whenever that was answered', async () => {
    const one = membership();
    expect(one.mayAct()).toBe(false);
    await one.join();
    expect(one.mayAct()).toBe(true);
    boot += ACT_WITHIN_MS - 1;
    expect(one.mayAct()).toBe(true);
    boot += 1;
    expect(one.mayAct()).toBe(false);
    renewals = [{ kind: 'accepted', sentAtMs: 0, revision: 2 }];
    sentAtMs = boot - 3_000;
    await renewed();
    boot += ACT_WITHIN_MS - 3_001;
    expect(one.mayAct()).toBe(true);
    boot += 1;
    expect(one.mayAct()).toBe(false);
    await one.leave();
  });

  it('P3: is forgotten when its renewal is refused, and joined anew under another id', async () => {
    const one = membership();
    await one.join();
    await expect.poll(() => pauses.length).toBe(1);
    expect(pauses[0]?.milliseconds).toBe(MEMBERSHIP_MS / MEMBERSHIP_RENEWALS);
    renewals = [{ kind: 'lost' }];
    await renewed();
    expect([lost, one.mayAct(), members]).toEqual([1, false, ['member-1']]);
    await renewed();
    expect([lost, one.mayAct(), members]).toEqual([1, true, ['member-1', 'member-2']]);
    await one.leave();
  });

  it('P5: that has no answer is no loss', async () => {
    const one = membership();
    await one.join();
    await expect.poll(() => pauses.length).toBe(1);
    await renewed();
    expect([lost, one.mayAct(), one.trouble]).toEqual([0, true, 'away']);
    await one.leave();
  });
});

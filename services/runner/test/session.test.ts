/** A runner's session whose lease is in the hands of the test, and whose guard writes its deadlines down (P15). */
import { randomUUID } from 'node:crypto';
import { setImmediate as afterMicrotasks } from 'node:timers/promises';
import { machineTime } from '@penstock/async';
import { FENCE_MS, type Lease, RUNNER_LEASE_MS, RUNNER_LEASE_RENEWALS } from '@penstock/bus';
import { bootClockMs, Guard, type Executor } from '@penstock/executor';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { newSealingKey } from '@penstock/identity';
import { SessionExecutors } from '../src/executors/session-executors.ts';
import { Session } from '../src/session/session.ts';

type Renewal = Awaited<ReturnType<Lease['renew']>>;

/** How long the broker takes to answer: longer than the fence, so that a deadline that counts from the answer is past the lease's end. */
const LATE_MS = FENCE_MS + 1_000;

/** A real guard, which knows of no deadline: those of the test are past, or of another time. */
class RecordingGuard extends Guard {
  readonly deadlines: number[] = [];

  override setDeadline(bootMs: number): Promise<void> {
    this.deadlines.push(bootMs);
    return Promise.resolve();
  }
}

const executor: Executor = {
  kind: 'process',
  start: () => {
    throw new Error('no stage starts in this test');
  },
  prewarm: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

let guard: RecordingGuard;
/** Renewals that wait for their answer. */
let renewals: ((result: Renewal) => void)[];
let renewed: number;
let released: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  renewals = [];
  renewed = 0;
  released = 0;
});

/** A session whose lease was sent at `sentAtMs`, and is stored now. */
async function begin(sentAtMs: number): Promise<Session<SessionExecutors>> {
  guard = new RecordingGuard();
  const session = await Session.begin({
    ports: {
      createGuard: () => guard,
      newKey: newSealingKey,
      acquire: async () => {
        await afterMicrotasks();
        return {
          sentAtMs,
          renew: () => {
            renewed += 1;
            return new Promise<Renewal>((resolve) => renewals.push(resolve));
          },
          release: () => {
            released += 1;
            return Promise.resolve();
          },
        };
      },
    },
    time: machineTime,
    newId: randomUUID,
    log: { debug: () => {}, warn: () => {}, error: () => {} },
    runner: 'r1',
    leaseMs: RUNNER_LEASE_MS,
    lease: (session) => ({ runner: 'r1', session, labels: [], slots: 1, attempts: [] }),
    createExecutors: () => new SessionExecutors([executor], 'none'),
  });
  onTestFinished(() => session.end());
  return session;
}

/** The moment of the next renewal has come, and it is sent. */
async function renewalIsSent(): Promise<(result: Renewal) => void> {
  await expect.poll(() => vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(RUNNER_LEASE_MS / RUNNER_LEASE_RENEWALS);
  await expect.poll(() => renewals.length).toBe(1);
  const [answer] = renewals.splice(0);
  if (answer === undefined) throw new Error('no renewal was sent');
  return answer;
}

describe("the deadline of a session's guard", () => {
  it('P15: is FENCE_MS before the end of the lease that was sent, however late that is answered', async () => {
    const sentAtMs = bootClockMs() - LATE_MS;
    await begin(sentAtMs);
    expect(guard.deadlines).toEqual([sentAtMs + RUNNER_LEASE_MS - FENCE_MS]);
  });

  it('P15: counts from when the accepted renewal was sent, not from its answer', async () => {
    await begin(bootClockMs());
    const answer = await renewalIsSent();
    const sentAtMs = bootClockMs() - LATE_MS;
    answer({ kind: 'accepted', sentAtMs, revision: 2 });
    await expect.poll(() => guard.deadlines.slice(1)).toEqual([sentAtMs + RUNNER_LEASE_MS - FENCE_MS]);
  });

  it('P15: stays as it is for a renewal that has no answer, and moves with the next that is accepted', async () => {
    await begin(bootClockMs());
    (await renewalIsSent())({ kind: 'unanswered', cause: new Error('the broker is away') });
    const answer = await renewalIsSent();
    expect(guard.deadlines).toHaveLength(1);
    const sentAtMs = bootClockMs() - LATE_MS;
    answer({ kind: 'accepted', sentAtMs, revision: 3 });
    await expect.poll(() => guard.deadlines.slice(1)).toEqual([sentAtMs + RUNNER_LEASE_MS - FENCE_MS]);
  });
});

describe('a session', () => {
  it('does not begin where its executors do not come up, and leaves neither guard nor lease', async () => {
    const prewarm = vi.spyOn(executor, 'prewarm').mockRejectedValue(new Error('the machine is short of processes'));
    onTestFinished(() => prewarm.mockRestore());
    await expect(begin(bootClockMs())).rejects.toThrow('short of processes');
    expect([guard.isGone, released]).toEqual([true, 1]);
  });

  it('P15: ends with its guard when its lease is lost, and renews it no more', async () => {
    const session = await begin(bootClockMs());
    (await renewalIsSent())({ kind: 'lost' });
    expect(await session.over).toBe('it fired');
    await afterMicrotasks();
    expect([session.isOver, guard.deadlines.length, vi.getTimerCount(), renewed]).toEqual([true, 1, 0, 1]);
  });

  it('P15: whose guard is gone before a renewal is answered has no further deadline and no further renewal', async () => {
    const session = await begin(bootClockMs());
    const answer = await renewalIsSent();
    await guard.fire();
    await session.over;
    answer({ kind: 'accepted', sentAtMs: bootClockMs(), revision: 2 });
    await afterMicrotasks();
    expect([guard.deadlines.length, vi.getTimerCount(), renewed]).toEqual([1, 0, 1]);
  });
});

/** How the wall clock of this machine stands to the broker's, which all services of an installation share. */
import { bootMs } from '@penstock/async';
import { buckets, streams } from '../contract/subjects.ts';
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { brokerClock } from './outlived.ts';
import { bucketStream } from './streams.ts';

export interface ClockDifference {
  /** Of ours to the broker's; less than nothing: ours is behind. */
  readonly aheadMs: number;
  /** So far off this may be: half of what the question took. */
  readonly withinMs: number;
}

/** What each may ask about (`permissions.ts`): any answer says what time it is there. */
const ASKED = {
  scheduler: streams.journal,
  gateway: streams.logs,
  auth: bucketStream(buckets.runners),
  registry: streams.logs,
  'webhook-ingest': streams.deliveries,
  runner: bucketStream(buckets.members),
} as const satisfies Readonly<Record<string, string>>;

export type ClockedService = keyof typeof ASKED;

const TIMEOUT_MS = 4_000;

/** Null: the broker does not say. Throws what a request throws, and `StoreRefused` before the streams are set up. */
export async function clockDifference(
  bus: Bus,
  service: ClockedService,
  wallNow: () => number = Date.now,
): Promise<ClockDifference | null> {
  const asked = bootMs();
  const { nowMs } = await brokerClock(wireOf(bus), ASKED[service], TIMEOUT_MS);
  const withinMs = (bootMs() - asked) / 2;
  return Number.isNaN(nowMs) ? null : { aheadMs: wallNow() - withinMs - nowMs, withinMs };
}

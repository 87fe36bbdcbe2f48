/** What the sessions of a runner need of the world: the bus, the leases of others, clocks, and a list on a disk. */
import type { Time } from '@penstock/async';
import type { buckets, Bus, LeaseEvent, LeaseWatch } from '@penstock/bus';
import type { SessionNames } from './session-file.ts';

export interface SessionWorld {
  readonly bus: Pick<Bus, 'request' | 'requestRetrying' | 'respond' | 'subscribe' | 'flush'>;
  readonly time: Time;
  watchLeases<V>(bucket: typeof buckets.members, handler: (event: LeaseEvent<V>) => void): Pick<LeaseWatch, 'stop'>;
  /** Whether it lived until then. */
  endLease(bucket: typeof buckets.runners, key: string): Promise<boolean>;
  readonly sessions: SessionNames;
}

/** A lease at the simulated broker, as the parts under test hold one. */
import { RequestTimeout, type Lease } from '@penstock/bus';
import { SimOutage } from '../world/errors.ts';
import { SimLease, type WriteResult } from '../world/leases.ts';
import type { Bucket } from '../world/broker.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { SimTime } from '../world/sim-time.ts';

interface Holder {
  readonly network: Network;
  readonly node: SimNode;
  readonly time: SimTime;
  readonly bucket: Bucket;
  readonly ttlMs: number;
}

/** Throws SimOutage where the broker does not take it. */
export async function acquireSimLease(
  { network, node, time, bucket, ttlMs }: Holder,
  key: string,
  first: unknown,
): Promise<Pick<Lease, 'sentAtMs' | 'renew' | 'release'>> {
  const { world } = network;
  const lease = new SimLease(network, node, bucket, key, ttlMs);
  let value = first;
  const write = (): Promise<WriteResult> => world.promise((resolve) => lease.write(value, resolve));
  const sentAtMs = (): number => {
    if (world.mutation === 'acts-for-ever' && bucket === 'members') return time.bootNow();
    return time.bootAt(lease.sentAt);
  };
  if ((await write()).kind !== 'accepted') throw new SimOutage(`no lease in ${bucket}`);
  return {
    get sentAtMs() {
      return sentAtMs();
    },
    async renew(next: unknown = value): ReturnType<Lease['renew']> {
      if (lease.over) return { kind: 'lost' };
      value = next;
      const result = await write();
      if (result.kind === 'accepted') {
        const isLate = world.mutation === 'guard-counts-from-the-line' && bucket === 'runners';
        return { kind: 'accepted', sentAtMs: isLate ? time.bootNow() : sentAtMs(), revision: 0 };
      }
      return result.kind === 'lost' ? result : { kind: 'unanswered', cause: new RequestTimeout(key, 0) };
    },
    async release() {
      lease.release();
    },
  };
}

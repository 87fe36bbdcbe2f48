/** What the real membership needs of a world: its clock, its timers, and a lease at the simulated broker. */
import { MEMBERSHIP_MS, type Lease } from '@penstock/bus';
import type { MembershipPorts } from '@penstock/scheduler/testing';
import { SimOutage } from '../world/errors.ts';
import { SimLease, type WriteResult } from '../world/leases.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';

export function simMembershipPorts(network: Network, node: SimNode, bootNow: () => number): MembershipPorts {
  const { world } = network;
  return {
    bootNow,
    newId: () => `${node.name}-${world.newId()}`,
    pause: (milliseconds, signal) => world.pause(node, milliseconds, signal),
    async acquire(member) {
      const lease = new SimLease(network, node, 'members', member, MEMBERSHIP_MS);
      const write = (): Promise<WriteResult> => world.promise((resolve) => lease.write({ member }, resolve));
      /** The boot clock of the machine, which began at another time than the world. */
      const sentAtMs = (): number => lease.sentAt + bootNow() - world.now;
      if ((await write()).kind !== 'accepted') throw new SimOutage('no membership');
      return {
        get sentAtMs() {
          return sentAtMs();
        },
        async renew(): ReturnType<Lease['renew']> {
          if (lease.over) return { kind: 'lost' };
          const result = await write();
          if (result.kind === 'accepted') return { kind: 'accepted', sentAtMs: sentAtMs(), revision: 0 };
          return result.kind === 'lost' ? result : { kind: 'unanswered', cause: new SimOutage('no answer') };
        },
        async release() {
          lease.release();
        },
      };
    },
  };
}

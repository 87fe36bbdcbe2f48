/** People who delete runs once these have ended, and ask again until they are gone (P34). */
import type { DeleteReply, DeleteRequest } from '@penstock/bus';
import { isEnded, type RunId } from '@penstock/run';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { OwnerRequests } from './owner-requests.ts';

interface Dependencies {
  readonly world: World;
  readonly owners: OwnerRequests;
  readonly gateways: readonly SimNode[];
}

const TENANT = 'tenant';
const AGAIN_MS = 2_000;

export class RunDeleters {
  readonly #dependencies: Dependencies;
  /** Those that are to be deleted, and are not known to be. */
  readonly #left = new Set<RunId>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /** It was acknowledged, and nobody but its creator looks at it. */
  doom(runId: RunId, partition: number): void {
    const { world } = this.#dependencies;
    this.#left.add(runId);
    world.after(world.random.exponential(12_000), () => this.#delete(runId, partition));
    if (world.random.chance(0.2)) this.#delete(runId, partition);
  }

  missing(): string | undefined {
    const [left] = [...this.#left].filter((runId) => !this.#dependencies.world.witness.isDisturbed(runId));
    return left === undefined ? undefined : `run ${left} is still to be deleted`;
  }

  #delete(runId: RunId, partition: number): void {
    const { world, owners, gateways } = this.#dependencies;
    if (!this.#left.has(runId)) return;
    const { witness } = world;
    const before = witness.stateOf(runId);
    const hadEnded = before !== undefined && isEnded(before.status);
    const isOurs = world.random.chance(0.9);
    const request: DeleteRequest = { runId, tenants: isOurs ? [TENANT] : ['another'], by: 'somebody' };
    owners.ask<DeleteReply>(world.random.pick(gateways), partition, 'delete', request, (answer) => {
      if (witness.isDisturbed(runId)) return;
      const fail = (holds: boolean, message: string): void =>
        world.check(holds, 'P34', `the deletion of ${runId} ${message}`);
      if (answer?.ok === true) {
        fail(isOurs, 'is done for another tenant');
        fail(witness.isDeleted(runId), 'is acknowledged and not committed');
        this.#left.delete(runId);
        world.mark('deleted');
        return;
      }
      if (answer?.code === 'CONFLICT') {
        // It is asked for again: one that is refused for good is missing at the end.
        const isTakenOver = answer.message.includes('still takes over from it');
        world.mark(isTakenOver ? 'deletion of a run that is taken over' : 'deletion of a run that goes on');
        fail(!hadEnded || isTakenOver, `is refused, it has not ended: ${answer.message}`);
      } else if (answer?.code === 'NOT_FOUND' && isOurs) {
        fail(witness.isDeleted(runId), 'says that there is no such run');
        this.#left.delete(runId);
      } else if (answer?.code === 'NOT_FOUND') world.mark('deletion by a stranger');
      world.after(AGAIN_MS, () => this.#delete(runId, partition));
    });
  }
}

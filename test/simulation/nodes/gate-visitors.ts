/** People who look for stages that wait for approval and say something there, also twice, also where they may not (P26). */
import type { DecideReply, DecideRequest } from '@penstock/bus';
import { isOpenGate, type RunId } from '@penstock/run';
import { APPROVERS } from '../world/pipelines.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { OwnerRequests } from './owner-requests.ts';

interface Dependencies {
  readonly world: World;
  readonly owners: OwnerRequests;
  readonly gateways: readonly SimNode[];
  readonly runs: () => readonly { readonly runId: RunId; readonly partition: number }[];
}

const TENANT = 'tenant';

export class GateVisitors {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  begin(): void {
    const { world } = this.#dependencies;
    world.after(world.random.between(200, 1_500), () => {
      this.#visit();
      this.begin();
    });
  }

  #visit(): void {
    const { world, runs } = this.#dependencies;
    const { random, witness } = world;
    const gates = runs().flatMap(({ runId, partition }) =>
      (witness.gatesOf(runId) ?? []).map((stage) => ({ runId, partition, stage })),
    );
    if (gates.length === 0) return;
    const open = gates.filter(({ runId, stage }) => {
      const state = witness.stateOf(runId)?.stages.find(({ name }) => name === stage);
      return state !== undefined && isOpenGate(state);
    });
    // Now and then one that does not wait.
    const { runId, partition, stage } = random.pick(open.length > 0 && random.chance(0.8) ? open : gates);
    const name = random.pick(APPROVERS);
    const isOurs = random.chance(0.9);
    const request: DecideRequest = {
      runId,
      stage,
      decision: random.chance(0.85) ? 'approved' : 'rejected',
      person: { id: `user/${name}`, by: name, names: [name], tenants: isOurs ? [TENANT] : [] },
    };
    this.#decide(partition, request);
    if (random.chance(0.2)) this.#decide(partition, request);
  }

  #decide(partition: number, request: DecideRequest): void {
    const { world, owners, gateways } = this.#dependencies;
    const { runId, stage, person, decision } = request;
    owners.ask<DecideReply>(world.random.pick(gateways), partition, 'decide', request, (answer) => {
      if (answer === undefined) {
        world.mark('decision without answer');
        if (world.random.chance(0.7)) world.after(500, () => this.#decide(partition, request));
        return;
      }
      if (world.witness.isDisturbed(runId)) return;
      const truth = world.witness.stateOf(runId)?.stages.find(({ name }) => name === stage);
      if (answer.ok) {
        const said = truth?.approvals?.some((one) => one.person === person.id && one.decision === decision) === true;
        world.check(said, 'P26', `a decision at ${stage} of run ${runId} is acknowledged, and not committed`);
        world.mark('decision taken');
      } else if (answer.code === 'FORBIDDEN') {
        world.check(
          !world.witness.mayDecide(runId, stage, person),
          'P26',
          `${person.by} is refused at ${stage} of run ${runId}, and is an approver`,
        );
        world.mark('decision of no approver refused');
      } else if (answer.code === 'CONFLICT') world.mark('decision where nothing waits');
    });
  }
}

/** Runs that are repeated (P30): all of them, what failed, or from some stage on, now and then with an edited file. */
import type { CreateRequest, OwnerErrorCode } from '@penstock/bus';
import { newRunId, type RunState } from '@penstock/run';
import type { PipelineDefinition } from '@penstock/pipeline';
import { expectedAdoption } from '../world/expected-adoption.ts';
import { POISON } from '../world/pipelines.ts';
import type { World } from '../world/world.ts';

export class RerunDraws {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** After so long; undefined: the run is not repeated. */
  drawDelay(request: CreateRequest): number | undefined {
    const { profile, random } = this.#world;
    if (profile.reruns === 0 || request.yaml === '' || request.origin.pullRequest !== undefined) return undefined;
    return random.chance(profile.reruns) ? random.exponential(10_000) : undefined;
  }

  /** Undefined: there is nothing left of the run. */
  drawn(parent: CreateRequest): CreateRequest | undefined {
    const world = this.#world;
    const { random } = world;
    const state = world.witness.stateOf(parent.runId);
    if (state === undefined || world.healed) return undefined;
    const { key, tenant, priority, limits } = parent;
    const runId = newRunId({ now: world.wallClock(), key, random: random.bytes(8) });
    return {
      runId,
      tenant,
      key,
      yaml: random.chance(0.2) ? this.#edited(parent.yaml) : parent.yaml,
      origin: { kind: 'api', actor: 'somebody' },
      ...(priority === undefined ? {} : { priority }),
      ...(limits === undefined ? {} : { limits }),
      rerun: { parent: parent.runId, ...this.#wish(state) },
    };
  }

  #wish({ stages }: RunState): Omit<NonNullable<CreateRequest['rerun']>, 'parent'> {
    const { random } = this.#world;
    if (stages.length === 0 || random.chance(0.1)) return {};
    if (random.chance(0.5)) return { onlyFailed: true };
    const names = stages.map(({ name }) => name);
    return { from: Array.from({ length: 1 + random.int(2) }, () => random.pick(names)) };
  }

  /** One of its stages means something else. */
  #edited(yaml: string): string {
    const { random } = this.#world;
    const definition = JSON.parse(yaml) as PipelineDefinition;
    if (definition.stages.length === 0 || yaml.includes(POISON)) return yaml;
    const index = random.int(definition.stages.length);
    const stages = definition.stages.map((stage, at) =>
      at === index ? { ...stage, timeoutMs: stage.timeoutMs + 1 } : stage,
    );
    return JSON.stringify({ ...definition, stages });
  }

  /** Whether it is to be refused so. */
  checkRefusal({ runId, yaml, rerun }: CreateRequest, code: OwnerErrorCode, message: string): void {
    const world = this.#world;
    const parent = world.witness.stateOf(rerun?.parent ?? '');
    const fail = (holds: boolean): void =>
      world.check(holds, 'P30', `the rerun ${runId} of ${rerun?.parent ?? ''} is answered ${code}: ${message}`);
    if (parent === undefined || world.witness.isDisturbed(parent.id) || parent.pipelineName.endsWith('unrestorable'))
      return;
    world.mark(`rerun refused: ${code}`);
    const isEdited = yaml !== parent.yaml;
    if (code === 'BAD_USER_INPUT') fail(isEdited && rerun?.from?.some((name) => name.includes('/')) === true);
    else if (code === 'CONFLICT')
      fail(!isEdited && expectedAdoption(parent, rerun ?? {}, new Set()).size === parent.stages.length);
    else fail(false);
  }
}

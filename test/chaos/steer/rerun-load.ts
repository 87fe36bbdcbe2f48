/**
 * Runs that are run again: whole, what failed, from a stage on, with another file, with other inputs; also such that go on, and such
 * that are repeats themselves. The account has which run repeats which, and what its parent looked like before.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { keyOf, newRunId, SERVICE_TENANT } from '@penstock/run';
import type { Random } from '../../support/random.ts';
import { INPUT, type ChaosPipeline } from '../pipelines.ts';
import type { Rerun, RerunAccount, RerunWish } from '../steered.ts';
import type { Client } from './client.ts';

const BEFORE_MS_MAX = 4_000;
/** More are a large run, which says nothing that a small one does not. */
const STAGES_MAX = 60;
const ENDED_FOR_GOOD: ReadonlySet<string> = new Set(['SUCCESS', 'SKIPPED']);

export class RerunLoad {
  readonly #client: Client;
  readonly #refused: Rerun[] = [];
  readonly #pictures = new Map<string, string>();

  constructor(client: Client) {
    this.#client = client;
  }

  account(): RerunAccount {
    return { refused: this.#refused, pictures: this.#pictures };
  }

  static canRepeat({ stages }: ChaosPipeline): boolean {
    return stages.length <= STAGES_MAX;
  }

  /** Null: there was nothing to run again, or it was given up. `begin` is called before it is sent for the first time. */
  async repeat(
    parent: { readonly id: string; readonly pipeline: ChaosPipeline },
    random: Random,
    begin: (id: string, pipeline: ChaosPipeline, rerun: Rerun) => void,
  ): Promise<{ readonly id: string; readonly pipeline: ChaosPipeline; readonly rerun: Rerun } | null> {
    const { api, givenUp } = this.#client;
    await pause(random.next() * BEFORE_MS_MAX);
    if (this.#client.isStopped()) return null;
    await this.#look(parent.id);
    const wish = wishFor(parent.pipeline, random);
    const rerun: Rerun = { parent: parent.id, wish };
    const pipeline = wish.yaml === undefined ? parent.pipeline : { ...parent.pipeline, yaml: wish.yaml };
    const key = keyOf({ tenant: SERVICE_TENANT, pipelineName: pipeline.name });
    const id = newRunId({ now: Date.now(), key, random: random.bytes(8) });
    begin(id, pipeline, rerun);
    while (!givenUp.aborted) {
      const outcome = await api.rerun(parent.id, id, wish);
      if (outcome.ok) {
        if (outcome.value.id !== id)
          this.#client.report('refused', id, `the rerun was answered with the run ${outcome.value.id}`);
        return { id, pipeline, rerun };
      }
      if (outcome.code === 'CONFLICT') {
        this.#refused.push(rerun);
        return null;
      }
      const isAhead = this.#client.clocksStepped && outcome.message.startsWith(ID_REFUSED);
      if (!isAhead) this.#client.judge(id, `rerun of ${parent.id}`, outcome);
      if (outcome.failure === 'refused' && !isAhead) return null;
      await this.#client.beforeRepeat(random);
    }
    return null;
  }

  /** Of a run that is over, once: nothing of that may change from here on. */
  async #look(id: string): Promise<void> {
    if (this.#pictures.has(id)) return;
    const outcome = await this.#client.api.picture(id);
    if (outcome.ok && outcome.value !== null && ENDED_FOR_GOOD.has(outcome.value.status))
      this.#pictures.set(id, outcome.value.text);
  }
}

export const ID_REFUSED = "'runId' is of a time that has not come";

const EDIT = "    env: { EDITED: 'yes' }\n";

function wishFor({ yaml, stages }: ChaosPipeline, random: Random): RerunWish {
  const executing = stages.filter(({ gate }) => gate === undefined);
  const kind = random.int(5);
  if (kind === 0) return {};
  if (kind === 1) return { onlyFailed: true };
  if (kind === 2 && yaml.includes('\ninputs:\n'))
    return { from: [random.pick(executing).name], inputs: [{ key: INPUT.name, value: 'two' }] };
  // A run of a run may have the one edited that its parent has: not the same once more.
  const unedited = executing.filter(({ name }) => !yaml.includes(`\n  ${name}:\n${EDIT}`));
  if (kind === 3 && unedited.length > 0) {
    const edited = random.pick(unedited).name;
    const changed = yaml.replace(`\n  ${edited}:\n`, `\n  ${edited}:\n${EDIT}`);
    return { edited, yaml: changed, from: [random.pick(executing).name] };
  }
  return { from: [random.pick(executing).name] };
}

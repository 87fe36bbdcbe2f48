/**
 * Reruns (P30) by the committed events of their runs and those of their parents alone: which stages are taken over is found anew,
 * from the parent's graph as it was read.
 */
import { isDeepStrictEqual } from 'node:util';
import type { CreateRequest } from '@penstock/bus';
import { evolve, newRun, planOf, stagesIn, type RunCreated, type RunEvent, type RunState } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import { expectedAdoption } from '../world/expected-adoption.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

/** What a rerun is to take over. */
interface Expected {
  readonly parent: RunState;
  /** Of the parent's stages, by name. */
  readonly texts: ReadonlyMap<string, string>;
  readonly stages: ReadonlySet<string>;
  readonly adopted: Set<string>;
}

export class RerunRules {
  readonly #world: World;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  readonly #asked: { requestOf(runId: string): CreateRequest | undefined; isCancelAsked(runId: string): boolean };
  readonly #expected = new Map<string, Expected>();

  constructor(
    world: World,
    runs: ReadonlyMap<string, RunTruth>,
    asked: { requestOf(runId: string): CreateRequest | undefined; isCancelAsked(runId: string): boolean },
  ) {
    this.#world = world;
    this.#runs = runs;
    this.#asked = asked;
  }

  created(run: RunTruth, created: RunCreated, disturbed: boolean): void {
    const world = this.#world;
    const request = this.#asked.requestOf(run.id);
    const { lineage } = created;
    const check = (holds: boolean, message: string): void =>
      world.check(disturbed || holds, 'P30', `run ${run.id.slice(-4)}: ${message}`);
    check((lineage === undefined) === (request?.rerun === undefined), 'is a rerun that nobody has asked for, or none');
    if (lineage === undefined) return;
    const parent = this.#runs.get(lineage.parent);
    if (parent === undefined || request?.rerun === undefined) {
      check(false, `repeats ${lineage.parent}, which was never committed`);
      return;
    }
    check(lineage.parent === request.rerun.parent, `repeats ${lineage.parent} in place of ${request.rerun.parent}`);
    check(
      lineage.version <= parent.events.length,
      `its parent was read at version ${lineage.version}, before its commit`,
    );
    check(lineage.root === (parent.state.lineage?.root ?? parent.id), `has the root ${lineage.root}`);
    check(created.key === parent.state.key, `is not of its parent's key`);
    const isEdited = created.yaml !== parent.state.yaml;
    check(
      (lineage.edited === true) === (isEdited || parent.state.lineage?.edited === true),
      'says that it is edited, or not',
    );
    if (disturbed) return;
    const events = parent.events.slice(0, lineage.version);
    const read = stateOf(parent.id, events, world);
    const changed = isEdited ? changedIn(read, created, world) : new Set<string>();
    const stages = expectedAdoption(read, request.rerun, changed);
    const count = stagesIn(lineage.adopts).length;
    check(count === stages.size, `takes over ${count} stages, and is to take over ${[...stages].join(', ')}`);
    this.#expected.set(run.id, { parent: read, texts: textsIn(events), stages, adopted: new Set() });
    world.mark('rerun created');
    if (read.finishedAt === undefined) world.mark('rerun of a live run');
    if (read.lineage !== undefined) world.mark('rerun of a rerun');
    if (isEdited) world.mark('rerun with an edited file');
    if (stages.size > 0) world.mark('rerun that takes over stages');
  }

  /** `run` is as it was before the event, `next` what stands behind that in the same commit. */
  checkEvent(run: RunTruth, event: RunEvent, next: RunEvent | undefined, fail: (message: string) => void): void {
    if (event.type === 'run_completed' && event.reason === 'parent')
      fail('its parent is there, and it ends without it');
    const expected = this.#expected.get(run.id);
    if (event.type === 'stages_adopted') {
      if (expected === undefined) fail('takes over stages, and is no rerun');
      else this.#checkAdopted(event, next, expected, fail);
      return;
    }
    if (expected === undefined) return;
    if (event.type === 'stage_started' && expected.adopted.has(event.stage))
      fail(`${event.stage} runs, and was taken over`);
    if (event.type === 'stages_added' && run.events.at(-1)?.type === 'stages_adopted')
      if (event.text !== expected.texts.get(event.stage))
        fail(`what ${event.stage} has added is not what it is taken to have`);
    const begins = event.type === 'stages_queued' || event.type === 'gates_queued' || event.type === 'stage_started';
    if (begins && expected.adopted.size < expected.stages.size)
      fail(`${event.type} before all is there that it takes over: ${expected.adopted.size} of ${expected.stages.size}`);
  }

  #checkAdopted(
    { adopted }: Extract<RunEvent, { type: 'stages_adopted' }>,
    next: RunEvent | undefined,
    expected: Expected,
    fail: (message: string) => void,
  ): void {
    const { parent, texts } = expected;
    for (const [index, { stage, outputs }] of adopted.entries()) {
      const before = parent.stages.find(({ name }) => name === stage);
      if (!expected.stages.has(stage)) fail(`${stage} is taken over, and is to run`);
      if (expected.adopted.has(stage)) fail(`${stage} is taken over twice`);
      if (!isDeepStrictEqual(outputs, before?.outputs)) fail(`${stage} has not the outputs that it has in the parent`);
      expected.adopted.add(stage);
      if (!texts.has(stage)) continue;
      this.#world.mark('taken over with what it has added');
      const follows = index === adopted.length - 1 && next?.type === 'stages_added' && next.stage === stage;
      if (!follows) fail(`${stage} is taken over without what it has added`);
    }
    if (
      expected.adopted.size < expected.stages.size &&
      next?.type !== 'stages_added' &&
      next?.type !== 'stages_adopted'
    )
      this.#world.mark('taken over in several commits');
  }

  /** Runs are cancelled because somebody asks for it, or for a newer run of their group that was not made from them. */
  committed(commit: Commit): void {
    for (const { id, events } of commit.runs) {
      const run = this.#runs.get(id);
      if (run === undefined || !events.some(({ type }) => type === 'run_cancelled')) continue;
      const { key, group, origin } = run.state;
      if (this.#asked.isCancelAsked(id) || origin.pullRequest !== undefined) continue;
      const all = [...this.#runs.values()];
      const own = all.indexOf(run);
      const byGroup = all.some(
        (other, index) =>
          // One that waited for its approval takes the others' place when it has that.
          (index > own || (other !== run && other.state.approvedAt !== undefined)) &&
          other.state.key === key &&
          other.state.group === group &&
          other.state.stages.plan.definition.concurrency?.cancelInProgress === true &&
          !this.#ancestorsOf(other).has(id),
      );
      this.#world.check(byGroup, 'P30', `run ${id.slice(-4)} is cancelled, by nobody but runs that were made from it`);
    }
  }

  #ancestorsOf(run: RunTruth): ReadonlySet<string> {
    const ancestors = new Set<string>();
    for (let id = run.state.lineage?.parent; id !== undefined; id = this.#runs.get(id)?.state.lineage?.parent)
      ancestors.add(id);
    return ancestors;
  }
}

function stateOf(id: string, [created, ...events]: readonly RunEvent[], world: World): RunState {
  const state = newRun(id, created as RunCreated, planOf(world.definitions.truly(created as RunCreated)));
  for (const event of events) evolve(state, event);
  return state;
}

function textsIn(events: readonly RunEvent[]): ReadonlyMap<string, string> {
  return new Map(
    events.flatMap((event) => (event.type === 'stages_added' ? [[event.stage, event.text] as const] : [])),
  );
}

/** The stages of the parent's file that another file has otherwise. */
function changedIn(parent: RunState, created: RunCreated, world: World): ReadonlySet<string> {
  const { stages } = world.definitions.truly(created);
  const before = new Map(parent.stages.plan.definition.stages.map((stage) => [stage.name, stage]));
  return new Set(stages.filter((stage) => !isDeepStrictEqual(stage, before.get(stage.name))).map(({ name }) => name));
}

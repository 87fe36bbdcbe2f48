/** What must hold of what is sent to runners, what they answer, and what they start (P4, P7, P12 to P14, P16, P19). */
import type { AttemptRef } from '@penstock/bus';
import { isEnded, isSettled } from '@penstock/run';
import type { Processes } from '../nodes/processes.ts';
import { keyOf, short, type Process } from '../world/attempts.ts';
import type { World } from '../world/world.ts';
import type { PartitionRules } from './partition-rules.ts';
import type { RunTruth } from './run-truth.ts';

interface SentRulesParts {
  readonly world: World;
  readonly processes: Processes;
  readonly runs: ReadonlyMap<string, RunTruth>;
  readonly partitions: PartitionRules;
}

export class SentRules {
  readonly #world: World;
  readonly #processes: Processes;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  readonly #partitions: PartitionRules;
  /** Attempts that their runners were told to stop. */
  readonly #stopped = new Set<string>();

  constructor({ world, processes, runs, partitions }: SentRulesParts) {
    this.#world = world;
    this.#processes = processes;
    this.#runs = runs;
    this.#partitions = partitions;
  }

  job(ref: AttemptRef & { readonly partition: number }, epoch: number): void {
    const partition = this.#partitions.of(ref.partition);
    if (partition.disturbed) return;
    const run = this.#runs.get(ref.runId);
    const live = run?.state.stages.get(run.state.stages.plan.indexOf.get(ref.stage) ?? -1)?.live;
    const world = this.#world;
    world.check(
      live?.attempt === ref.attempt && live.session === ref.session && live.credit === ref.credit,
      'P12',
      `${short(ref)} is sent, which is no committed live attempt`,
    );
    world.check(
      run === undefined || !isEnded(run.state.status),
      'P14',
      `${short(ref)} is sent after its run has ended`,
    );
    world.check(
      partition.epoch === epoch && partition.kind !== 'released',
      'P4',
      `${short(ref)} is sent by epoch ${epoch}, while the log is at epoch ${partition.epoch} (${partition.kind ?? 'empty'})`,
    );
  }

  stop(ref: AttemptRef): void {
    const run = this.#runs.get(ref.runId);
    if (run === undefined || this.#isDisturbed(run)) return;
    const live = run.state.stages.get(run.state.stages.plan.indexOf.get(ref.stage) ?? -1)?.live;
    const healthy = live?.attempt === ref.attempt && live.session === ref.session && live.stopping === undefined;
    this.#world.check(!healthy, 'P13', `a stop is sent to ${short(ref)}, which nobody has ended`);
  }

  processStarts({ ref, runner }: Process): void {
    const run = this.#runs.get(ref.runId);
    const stage = run?.state.stages.get(run.state.stages.plan.indexOf.get(ref.stage) ?? -1);
    const live = stage?.live;
    this.#world.check(
      live !== undefined &&
        live.attempt === ref.attempt &&
        live.runner === runner &&
        keyOf({ ...live, runId: ref.runId, stage: ref.stage }) === keyOf(ref),
      'P12',
      `${short(ref)} starts at ${runner}, but the log says ${JSON.stringify(live)}`,
    );
  }

  resultAnswered(ref: AttemptRef, answer: 'committed' | 'obsolete'): void {
    const run = this.#runs.get(ref.runId);
    if (run === undefined || this.#isDisturbed(run)) return;
    const live = run.state.stages.get(run.state.stages.plan.indexOf.get(ref.stage) ?? -1)?.live;
    const lives = live?.attempt === ref.attempt && live.session === ref.session && live.credit === ref.credit;
    this.#world.check(
      !lives,
      answer === 'committed' ? 'P16' : 'P7',
      `the result of ${short(ref)} is answered '${answer}', but its attempt lives`,
    );
  }

  runnerAnswered(asked: AttemptRef & { readonly repeated?: boolean }, verb: 'job' | 'stop', answer: string): void {
    const world = this.#world;
    const key = keyOf(asked);
    if (verb === 'stop') {
      this.#stopped.add(key);
      if (answer !== 'gone') return;
      world.mark('stop answered gone');
      this.#processes.goneSaid(asked);
    } else if (answer === 'refused')
      world.mark(this.#stopped.has(key) ? 'grant refused after its stop' : 'grant refused');
    else if (answer === 'accepted' && asked.repeated === true) world.mark('repeated grant taken');
  }

  workspaceRemoved(runId: string, runner: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined || this.#isDisturbed(run)) return;
    const needed = !isSettled(run.state) && Object.values(run.state.workspaces).includes(runner);
    this.#world.check(
      !needed,
      'P19',
      `the workspace of run ${runId} is removed from ${runner}, where later stages need it`,
    );
  }

  #isDisturbed({ partition }: RunTruth): boolean {
    return this.#partitions.isDisturbed(partition);
  }
}

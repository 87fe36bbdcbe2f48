/** The processes of stages, as the operating systems of the runners' machines know them, and what must hold of them. */
import type { AttemptRef } from '@penstock/bus';
import { short, type Process } from '../world/attempts.ts';
import type { World } from '../world/world.ts';

export class Processes {
  readonly #world: World;
  /** Of each stage; more than one only where a log has lost what was granted. */
  readonly #alive = new Map<string, Set<Process>>();
  readonly #started = new Set<string>();
  readonly #gone = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  get count(): number {
    return [...this.#alive.values()].reduce((count, { size }) => count + size, 0);
  }

  start(process: Process): void {
    const { ref, runner } = process;
    const world = this.#world;
    const stage = stageOf(ref);
    const id = `${stage}/${ref.attempt}`;
    world.trace(() => `${runner} starts ${short(ref)}`);
    const alive = this.#alive.get(stage) ?? new Set();
    const [other] = alive;
    // Whatever a log has lost: they share a folder.
    const beside = [...alive].find((process) => process.runner === runner);
    world.check(
      beside === undefined,
      'RUNNER-7',
      `two processes of stage ${stage} at a time on ${runner}: ${short(ref)} and ${short(beside?.ref ?? ref)}`,
    );
    if (!world.witness.isDisturbed(ref.runId)) {
      world.check(
        other === undefined,
        'P12',
        `two processes of stage ${stage} at a time: ${short(ref)} and ${short(other?.ref ?? ref)}`,
      );
      world.check(!this.#started.has(id), 'P12', `attempt ${short(ref)} starts a second time`);
      world.check(
        !this.#gone.has(`${id}/${ref.session}`),
        'P14',
        `${short(ref)} starts after its runner said that it is gone`,
      );
      world.witness.processStarts(process);
    }
    this.#started.add(id);
    this.#alive.set(stage, alive.add(process));
  }

  /** False: it had ended before. */
  end(process: Process): boolean {
    const stage = stageOf(process.ref);
    const alive = this.#alive.get(stage);
    if (alive?.delete(process) !== true) return false;
    if (alive.size === 0) this.#alive.delete(stage);
    this.#world.trace(() => `${process.runner}: ${short(process.ref)} ends`);
    return true;
  }

  goneSaid(ref: AttemptRef): void {
    this.#gone.add(`${stageOf(ref)}/${ref.attempt}/${ref.session}`);
  }

  ofStage(runId: string, stage: string): Process | undefined {
    const [process] = this.#alive.get(`${runId}/${stage}`) ?? [];
    return process;
  }
}

function stageOf(ref: { readonly runId: string; readonly stage: string }): string {
  return `${ref.runId}/${ref.stage}`;
}

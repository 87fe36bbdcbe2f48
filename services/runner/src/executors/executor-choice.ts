/**
 * Which of a session's executors runs a stage: the first that gives what the stage asks for, and at least the isolation that
 * its run's trust demands. It owns the executors of one session.
 */
import type { Executor, ExecutorKind } from '@penstock/executor';
import type { Job } from '@penstock/bus';

/** How far a stage is kept from its machine: as a process, in a sandbox, in a container. */
export type IsolationLevel = 'none' | 'sandbox' | 'container';

const LEVELS: readonly IsolationLevel[] = ['none', 'sandbox', 'container'];

interface Gift {
  readonly level: IsolationLevel;
  readonly images: boolean;
  /** `network: none`, and what an untrusted stage is not to reach. */
  readonly network: boolean;
}

const GIFTS: Readonly<Record<ExecutorKind, Gift>> = {
  process: { level: 'none', images: false, network: false },
  sandbox: { level: 'sandbox', images: false, network: true },
  container: { level: 'container', images: true, network: true },
  kubernetes: { level: 'container', images: true, network: true },
};

/** What of a job decides where it runs. */
export type PlacedJob = Pick<Job, 'place' | 'origin'>;

export class SessionExecutors {
  readonly #executors: readonly Executor[];
  readonly #untrusted: IsolationLevel;

  /** In the order of preference. `untrusted`: the least that a stage of an untrusted run gets. */
  constructor(executors: readonly Executor[], untrusted: IsolationLevel) {
    this.#executors = executors;
    this.#untrusted = untrusted;
  }

  /** Known once they are warm. */
  get areIsolated(): boolean {
    return this.#executors.every(({ isIsolated }) => isIsolated !== false);
  }

  /** Undefined: none of this runner's gives what the stage asks for. */
  choose(job: PlacedJob): Executor | undefined {
    return this.#executors.find(({ kind }) => fits(GIFTS[kind], job, this.#untrusted));
  }

  async prewarm(count: number): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.prewarm(count)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.close()));
  }
}

function fits({ level, images, network }: Gift, { place, origin }: PlacedJob, untrusted: IsolationLevel): boolean {
  const least = origin.trusted === false ? untrusted : 'none';
  const asksForImages = place?.image !== undefined || (place?.services?.length ?? 0) > 0;
  return (
    LEVELS.indexOf(level) >= LEVELS.indexOf(least) &&
    (images || !asksForImages) &&
    (network || place?.network === undefined)
  );
}

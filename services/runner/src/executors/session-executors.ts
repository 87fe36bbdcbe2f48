/** The executors of one session: which of them runs a stage, and their common beginning and end. It owns them. */
import {
  chooseExecutor,
  type Executor,
  type IsolationLevel,
  type StageNeeds,
  type StagePlace,
} from '@penstock/executor';
import type { Job } from '@penstock/bus';

/** What of a job decides where it runs. */
export type PlacedJob = Pick<Job, 'place' | 'origin'>;

export interface Assignment {
  /** Undefined: none of this runner's gives what the stage asks for. */
  readonly executor: Executor | undefined;
  /** As the executor is asked for it. */
  readonly place: StagePlace | undefined;
}

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

  assign(job: PlacedJob): Assignment {
    const { place, isolation } = needsOf(job, this.#untrusted);
    const executor = chooseExecutor(this.#executors, { place, isolation });
    // Who is not trusted, and isolated, reaches no address that is not public.
    const isOpen = isolation === 'none' || place?.network !== undefined;
    return { executor, place: isOpen ? place : { ...place, network: 'public' } };
  }

  async prewarm(count: number): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.prewarm(count)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.close()));
  }
}

/** `untrusted`: the least isolation of a stage whose run is not trusted. */
function needsOf({ place, origin }: PlacedJob, untrusted: IsolationLevel): StageNeeds {
  return { place, isolation: origin.trusted === false ? untrusted : 'none' };
}

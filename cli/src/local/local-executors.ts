/** What the stages of a local run can run in on this machine, and what a file asks for in vain. It owns the executors. */
import {
  chooseExecutor,
  type Executor,
  type ExecutorKind,
  type IsolationLevel,
  ProcessExecutor,
  type StagePlace,
} from '@penstock/executor';
import type { Lacking } from '@penstock/pipeline';

export interface LocalExecutorOptions {
  readonly slots: number;
  readonly warn: (message: string) => void;
}

/** An invented stage for each key that a plain process cannot serve: who runs it has that key. */
const ASKING: readonly (readonly [key: 'image' | 'services' | 'network', place: StagePlace])[] = [
  ['image', { image: { name: 'image' } }],
  ['services', { services: [{ name: 'service', image: { name: 'image' }, env: {} }] }],
  ['network', { network: 'none' }],
];

const NO_CONTAINERS = {
  message: 'stages with an image, or with services, need podman or docker, and neither is found here',
  suggestion: "install one of them, or start the pipeline on a server with 'penstock trigger'",
};
const NO_SANDBOX = {
  message: 'a stage without a network needs a sandbox or a container, and this machine has neither',
  suggestion: 'install bubblewrap, podman or docker',
};

export class LocalExecutors {
  /** What a file cannot ask for here, by its key. */
  readonly lacking: Lacking;
  /** In the order of preference. */
  readonly #executors: readonly Executor[];

  constructor({ slots, warn }: LocalExecutorOptions) {
    this.#executors = [new ProcessExecutor({ idleMax: slots, warn })];
    this.lacking = lackingOf(this.#executors);
  }

  /** Undefined: none gives what the stage asks for. */
  choose(place: StagePlace | undefined): Executor | undefined {
    return chooseExecutor(this.#executors, { place, isolation: NO_ISOLATION });
  }

  async prewarm(count: number): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.prewarm(count)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.close()));
  }
}

/** A local run is of its own user's trust. */
const NO_ISOLATION: IsolationLevel = 'none';

export function lackingOf(executors: readonly { readonly kind: ExecutorKind }[]): Lacking {
  return new Map(
    ASKING.filter(([, place]) => chooseExecutor(executors, { place, isolation: NO_ISOLATION }) === undefined).map(
      ([key]) => [key, key === 'network' ? NO_SANDBOX : NO_CONTAINERS],
    ),
  );
}

/** What the stages of a local run can run in on this machine, and what a file asks for in vain. It owns the executors. */
import { statSync } from 'node:fs';
import {
  chooseExecutor,
  ContainerExecutor,
  type Executor,
  type ExecutorKind,
  type IsolationLevel,
  findEngine,
  ProcessExecutor,
  type StagePlace,
  type StageUser,
} from '@penstock/executor';
import type { Lacking, PipelineDefinition } from '@penstock/pipeline';

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

const ROOTS_FOLDER = {
  message: 'a container is never root of its machine, and this folder belongs to root',
  suggestion: 'give the folder to another user (chown -R), or start penstock as one',
};
/** Only a file that has one of these words can ask for a container; looking for an engine takes a moment. */
const MAY_ASK = /\b(image|services|network)\b/;

export class LocalExecutors {
  readonly #warn: (message: string) => void;
  /** In the order of preference. */
  readonly #executors: Executor[];
  #user: StageUser | undefined;
  #lacking: Lacking;

  constructor({ slots, warn }: LocalExecutorOptions) {
    this.#warn = warn;
    this.#executors = [new ProcessExecutor({ idleMax: slots, sharesRights: true, forksAhead: true, warn })];
    this.#lacking = lackingOf(this.#executors);
  }

  /** What a file cannot ask for here, by its key; after `findFor` it was looked for. */
  get lacking(): Lacking {
    return this.#lacking;
  }

  /** Looks for podman or docker where `text`, a pipeline file, may ask for them. `folder`: where its stages run. */
  async findFor(text: string, folder: string): Promise<void> {
    if (!MAY_ASK.test(text)) return;
    const { engine } = await findEngine();
    if (engine === null) return;
    const { uid, gid } = statSync(folder);
    if (process.getuid?.() === 0) {
      if (uid === 0) {
        this.#lacking = new Map([...this.#lacking.keys()].map((key) => [key, ROOTS_FOLDER]));
        return;
      }
      this.#user = { uid, gid };
    }
    this.#executors.push(new ContainerExecutor({ engine, owner: `local ${process.pid}`, warn: this.#warn }));
    this.#lacking = lackingOf(this.#executors);
  }

  /** Whom a stage runs as, where that is not the user of this process: root's containers belong to the owner of the folder. */
  userIn(executor: Executor): StageUser | undefined {
    return executor.kind === 'container' ? this.#user : undefined;
  }

  /** Undefined: none gives what the stage asks for. */
  choose(place: StagePlace | undefined): Executor | undefined {
    return chooseExecutor(this.#executors, { place, isolation: NO_ISOLATION });
  }

  async prewarm(count: number): Promise<void> {
    // What does not come up now is started once more for the stage, and told in its log.
    await Promise.allSettled(this.#executors.map((executor) => executor.prewarm(count)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.close()));
  }
}

/** How many stages can begin at once as plain processes: a shell that comes up for another kind would only be in its way. */
export function shellsAtOnce({ stages }: Pick<PipelineDefinition, 'stages'>): number {
  return stages.filter(
    ({ after, place, approval }) => after.length === 0 && place === undefined && approval === undefined,
  ).length;
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

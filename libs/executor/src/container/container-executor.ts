/**
 * The container executor: each stage in a container of podman or docker, services beside it. It owns the way to the engine and
 * the folder that holds what containers share with it.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Executor, OutputSink, StageProcess, StageSpec } from '../contract/port.ts';
import type { Guard } from '../guard/guard.ts';
import type { StageLimits } from '../limits/stage-limits.ts';
import { Leftovers } from '../process/leftovers.ts';
import { Scratch } from '../process/scratch.ts';
import type { ProcessIdentity } from '../system/proc.ts';
import { openConnection, type Connection } from './connection.ts';
import { ContainerStage } from './container-stage.ts';
import { EngineFailed } from './errors.ts';
import type { FoundEngine } from './find-engine.ts';
import { labelsOf } from './ownership.ts';
import { writeSeccompProfile } from './seccomp-profile.ts';

export interface ContainerExecutorOptions {
  readonly engine: FoundEngine;
  /** Every container is held by it before a stage starts there; once it is gone nothing starts any more. */
  readonly guard?: Guard | undefined;
  /** Whose containers these are, across restarts: `sweepContainers` removes those of an owner. */
  readonly owner: string;
  /** Lists the processes to be killed by `killLeftovers` after a crash. */
  readonly leftoversFile?: string | undefined;
  /** There from the first container on until all have been removed: where it is found at a start, there is something to sweep. */
  readonly markerFile?: string | undefined;
  /** For stages that name no image. */
  readonly defaultImage?: string | undefined;
  /** Names and addresses that no stage is to reach. */
  readonly deniedHosts?: readonly string[] | undefined;
  /** What a stage may take of the disk; absent: what it can get. */
  readonly limits?: StageLimits | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

const BOOT = { stage: readScript('./boot.sh'), service: readScript('./service-boot.sh') };

export class ContainerExecutor implements Executor {
  readonly kind = 'container';
  readonly isIsolated = true;
  readonly #options: ContainerExecutorOptions;
  readonly #scratch = new Scratch();
  readonly #folder: string;
  readonly #leftovers: Leftovers | undefined;
  readonly #running = new Set<ContainerStage>();
  readonly #labels: Readonly<Record<string, string>>;
  readonly #seccompProfile: string | undefined;
  #connecting: Promise<Connection> | null = null;
  #connected: Connection | null = null;
  #connections = 0;
  #isMarked = false;
  /** Containers that the engine did not remove. */
  #leftBehind = 0;
  #over: string | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: ContainerExecutorOptions) {
    this.#options = options;
    this.#folder = join(this.#scratch.privateFolder, 'containers');
    mkdirSync(this.#folder, { mode: 0o700 });
    this.#labels = labelsOf(options.owner);
    if (options.engine.kind === 'podman')
      this.#seccompProfile = writeSeccompProfile(join(this.#scratch.privateFolder, 'seccomp.json'));
    try {
      this.#leftovers = options.leftoversFile === undefined ? undefined : new Leftovers(options.leftoversFile);
    } catch (error) {
      // A full disk takes no list.
      this.#scratch.close();
      throw error;
    }
    void options.guard?.gone.then((why) => this.#end(`the guard is gone: ${why}`));
  }

  /** Without root the engine gives the users of a container numbers of its own. */
  get canChangeUser(): boolean {
    return process.getuid?.() === 0;
  }

  start(spec: StageSpec, sink: OutputSink): StageProcess {
    const { engine, defaultImage, deniedHosts = [], warn = (message) => process.emitWarning(message) } = this.#options;
    const mapsUsers = engine.kind === 'podman' && process.getuid?.() !== 0;
    const stage = new ContainerStage(spec, sink, {
      connect: async () => {
        this.#mark();
        return await this.#connect();
      },
      holders: {
        hold: (processes) => this.#hold(processes),
        letGo: (processes) => this.#letGo(processes),
        leftBehind: (cause) => {
          this.#leftBehind += 1;
          warn(`a container could not be removed: ${cause instanceof Error ? cause.message : String(cause)}`);
        },
      },
      name: `penstock-${randomBytes(9).toString('hex')}`,
      folder: this.#folder,
      labels: this.#labels,
      defaultImage,
      deniedHosts,
      mapsUsers,
      asEngine: mapsUsers && engine.kind === 'podman' ? [...engine.command, 'unshare'] : undefined,
      stageLimits: this.#options.limits,
      seccompProfile: this.#seccompProfile,
      boot: BOOT,
    });
    if (this.#over !== null) stage.end(this.#over);
    this.#running.add(stage);
    void stage.ended.then(() => this.#running.delete(stage));
    return stage;
  }

  /** Containers cannot be kept ready: their image is not known. Podman's process takes 40 MB, and waits for the first of them. */
  prewarm(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#end('the executor is closed');
    await Promise.all([...this.#running].map((stage) => stage.ended));
    const connection = await this.#connecting?.catch(() => null);
    await connection?.close();
    if (this.#options.markerFile !== undefined && this.#isMarked && this.#leftBehind === 0)
      rmSync(this.#options.markerFile, { force: true });
    this.#scratch.close();
  }

  #mark(): void {
    if (this.#isMarked || this.#options.markerFile === undefined) return;
    writeFileSync(this.#options.markerFile, '', { mode: 0o600 });
    this.#isMarked = true;
  }

  #end(why: string): void {
    this.#over ??= why;
    for (const stage of this.#running) stage.end(why);
  }

  async #hold(processes: readonly ProcessIdentity[]): Promise<void> {
    this.#leftovers?.add(processes);
    await this.#options.guard?.hold(processes);
    if (this.#over !== null) throw new EngineFailed(this.#over, 0);
  }

  #letGo(processes: readonly ProcessIdentity[]): void {
    this.#options.guard?.letGo(processes);
    this.#leftovers?.remove(processes);
  }

  /** Again where podman's process has ended: containers do not need it to live. */
  #connect(): Promise<Connection> {
    if (this.#connecting !== null && this.#connected?.isOver !== true) return this.#connecting;
    this.#connections += 1;
    this.#connected = null;
    const connecting = openConnection(
      this.#options.engine,
      join(this.#scratch.privateFolder, `engine-${this.#connections}`),
    );
    this.#connecting = connecting;
    connecting.then(
      (connection) => {
        this.#connected = connection;
      },
      () => {
        if (this.#connecting === connecting) this.#connecting = null;
      },
    );
    return connecting;
  }
}

function readScript(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}

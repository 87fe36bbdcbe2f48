/**
 * One container from its request to its removal: held by the guard before anything of a stage runs in it, and gone when
 * `removed` resolves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { identityOf, isAlive, signalProcess, type ProcessIdentity } from '../system/proc.ts';
import type { ContainerRequest, ContainerState, Engine } from './engine.ts';
import { EngineFailed } from './errors.ts';

/** Whoever ends processes when their owner cannot: the guard, and the list for the next start. */
export interface Holders {
  hold(processes: readonly ProcessIdentity[]): Promise<void>;
  letGo(processes: readonly ProcessIdentity[]): void;
}

const ENDED_MS_MAX = 20_000;
const ENDED_POLL_MS = 5;
const REMOVE_TRIES_MAX = 5;
const REMOVE_RETRY_MS = 200;

export class Confined {
  readonly name: string;
  readonly #engine: Engine;
  readonly #holders: Holders;
  #process: ProcessIdentity | null = null;

  /** Created and held; it does not run yet where the engine can do it so, else its first process waits by itself. */
  static async make(engine: Engine, request: ContainerRequest, holders: Holders): Promise<Confined> {
    const confined = new Confined(engine, request.name, holders);
    try {
      await engine.create(request);
      await engine.init(request.name);
      await confined.#hold();
      await engine.start(request.name);
      await confined.#hold();
      return confined;
    } catch (error) {
      await confined.remove();
      throw error;
    }
  }

  private constructor(engine: Engine, name: string, holders: Holders) {
    this.#engine = engine;
    this.name = name;
    this.#holders = holders;
  }

  get isAlive(): boolean {
    return this.#process !== null && isAlive(this.#process);
  }

  /** Number of its first process on this machine. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Its first process, and with it all others. */
  kill(): void {
    if (this.#process === null || signalProcess(this.#process, 'SIGKILL') || !isAlive(this.#process)) return;
    // Another user's: the engine may.
    this.#engine.kill(this.name).catch(() => {});
  }

  /** Once its first process is gone. Null: the container itself is. */
  async endState(): Promise<ContainerState | null> {
    const deadline = performance.now() + ENDED_MS_MAX;
    for (;;) {
      const state = await this.#engine.inspect(this.name);
      if (state === null || !state.isRunning) return state;
      if (performance.now() > deadline) throw new EngineFailed('the engine does not see that a container has ended', 0);
      await delay(ENDED_POLL_MS);
    }
  }

  /** Resolves when no process of it is left; rejects where the engine cannot remove what is left on the disk. */
  async remove(): Promise<void> {
    this.kill();
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#engine.remove(this.name);
        break;
      } catch (error) {
        if (tries === REMOVE_TRIES_MAX) throw error;
        await delay(REMOVE_RETRY_MS * tries);
      }
    }
    while (this.isAlive) await delay(ENDED_POLL_MS);
    if (this.#process !== null) this.#holders.letGo([this.#process]);
  }

  async #hold(): Promise<void> {
    if (this.#process !== null) return;
    const state = await this.#engine.inspect(this.name);
    if (state === null || state.pid === 0) return;
    const process = identityOf(state.pid);
    if (process.startTime === '') {
      // A short one may have ended by itself.
      if (state.isRunning)
        throw new EngineFailed(
          'the processes of the engine are not to be seen here: the runner has to share its process namespace',
          0,
        );
      return;
    }
    await this.#holders.hold([process]);
    this.#process = process;
  }
}

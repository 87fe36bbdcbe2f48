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
  /** The engine does not remove a container: the next start does. */
  leftBehind(cause: unknown): void;
}

const ENDED_MS_MAX = 20_000;
const ENDED_POLL_MS = 5;
/** So long an engine that does not answer is asked again how a container ended: a stage is not lost by a moment of its engine's. */
const ANSWERED_MS_MAX = 30_000;
const ANSWERED_RETRY_MS = 100;
const REMOVE_TRIES_MAX = 5;
const REMOVE_RETRY_MS = 200;

export class Confined {
  readonly name: string;
  readonly #holders: Holders;
  readonly #reach: (() => Promise<Engine>) | undefined;
  #engine: Engine;
  #process: ProcessIdentity | null = null;

  /**
   * Created and held; it does not run yet where the engine can do it so, else its first process waits by itself. Where this rejects nothing of
   * it is there, or it is told as left behind. @throws EngineFailed; the signal's reason
   */
  static async make(
    engine: Engine,
    request: ContainerRequest,
    holders: Holders,
    signal: AbortSignal,
    /** The engine once more, where the way to it may have broken. */
    reach?: () => Promise<Engine>,
  ): Promise<Confined> {
    const confined = new Confined(engine, request.name, holders, reach);
    let isAsked = false;
    try {
      await engine.create(request, signal, () => {
        isAsked = true;
      });
      signal.throwIfAborted();
      await engine.init(request.name);
      await confined.#hold();
      await engine.start(request.name);
      await confined.#hold();
      return confined;
    } catch (error) {
      // Of an engine that hangs the removal is waited for as well.
      if (isAsked) await confined.remove().catch((cause: unknown) => holders.leftBehind(cause));
      throw error;
    }
  }

  private constructor(engine: Engine, name: string, holders: Holders, reach: (() => Promise<Engine>) | undefined) {
    this.#engine = engine;
    this.name = name;
    this.#holders = holders;
    this.#reach = reach;
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

  /** Once its first process is gone. Null: the container itself is. `signal`: nobody needs to know any more. */
  async endState(signal: AbortSignal): Promise<ContainerState | null> {
    let deadline: number | undefined;
    for (;;) {
      const state = await this.#inspectAgain(signal);
      if (state === null || !state.isRunning) return state;
      deadline ??= performance.now() + ENDED_MS_MAX;
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

  /** What the engine refuses is its word; where it does not answer, or fails itself, it is asked again. */
  async #inspectAgain(signal: AbortSignal): Promise<ContainerState | null> {
    const deadline = performance.now() + ANSWERED_MS_MAX;
    for (;;) {
      try {
        return await this.#engine.inspect(this.name);
      } catch (error) {
        const isPassing = error instanceof EngineFailed && (error.status === 0 || error.status >= 500);
        if (!isPassing || signal.aborted || performance.now() > deadline) throw error;
      }
      await delay(ANSWERED_RETRY_MS, undefined, { signal });
      this.#engine = (await this.#reach?.().catch(() => undefined)) ?? this.#engine;
    }
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

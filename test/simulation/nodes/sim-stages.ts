/** The processes of a session's stages, as its executors start and stop them; the guard ends them at any moment. */
import type { Job } from '@penstock/bus';
import type { Executor, OutputSink, StageExit, StageProcess, StageSpec } from '@penstock/executor';
import { refOf, type Process } from '../world/attempts.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { Processes } from './processes.ts';

const GRACE_MS = 10_000;
const HANGS_MS = 120_000;
const LINES_MAX = 6;

export class SimStages {
  readonly areIsolated = true;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #life: number;
  readonly #processes: Processes;
  readonly #alive = new Map<Process, (exit: StageExit) => void>();
  #closed = false;

  constructor(world: World, node: SimNode, processes: Processes) {
    this.#world = world;
    this.#node = node;
    this.#life = node.life;
    this.#processes = processes;
  }

  prewarm(): Promise<void> {
    return this.#world.pause(this.#node, this.#world.random.between(0, 20));
  }

  async close(): Promise<void> {
    this.killAll();
  }

  /** The guard has fired, or the session ends: nothing is started afterwards, for a helper gets no stage that its guard does not hold. */
  killAll(): void {
    this.#closed = true;
    const { random } = this.#world;
    for (const [process, ended] of this.#alive) {
      if (!this.#processes.end(process)) continue;
      this.#world.mark('guard ended a process');
      ended(
        random.chance(0.7)
          ? { kind: 'lost', cause: 'its helper is gone' }
          : { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false },
      );
    }
    this.#alive.clear();
  }

  executorFor(job: Job): Executor {
    return {
      kind: 'process',
      start: (spec, sink) => this.#start(job, spec, sink),
      prewarm: () => this.prewarm(),
      close: () => this.close(),
    };
  }

  #start(job: Job, spec: StageSpec, sink: OutputSink): StageProcess {
    const world = this.#world;
    const { random, profile } = world;
    const process: Process = { ref: refOf(job), runner: this.#node.name };
    const ended = world.promise<StageExit>((resolve) => {
      if (this.#closed) {
        resolve({ kind: 'lost', cause: 'the executor is closed' });
        return;
      }
      this.#alive.set(process, (exit) => this.#node.handle(this.#life, () => resolve(exit)));
      this.#processes.start(process);
    });
    const hangs = !world.healed && random.chance(profile.stageHangs);
    const lastsMs = hangs ? HANGS_MS : random.exponential(profile.stageMs);
    this.#endAfter(process, lastsMs, { kind: 'exit', code: random.chance(profile.stageFails) ? 1 : 0 });
    if (lastsMs > spec.timeoutMs && !(profile.runnersLazy && hangs))
      this.#endAfter(process, spec.timeoutMs, { kind: 'timeout' });
    if (profile.logs) this.#writeLater(process, sink, lastsMs, 0);
    let stopping = false;
    return {
      ended,
      startedAtMs: undefined,
      stop: (reason) => {
        if (stopping) return;
        stopping = true;
        // SIGTERM; most obey, the others get SIGKILL after the grace.
        const afterMs = random.chance(0.7) ? random.between(0, 200) : GRACE_MS;
        this.#endAfter(process, afterMs, { kind: 'stopped', reason });
      },
    };
  }

  /** A line now and then, while it lives; the runner reads it when it can. */
  #writeLater(process: Process, sink: OutputSink, lastsMs: number, count: number): void {
    const { random } = this.#world;
    this.#world.after(random.between(0, lastsMs / 2), () => {
      if (count >= LINES_MAX || !this.#alive.has(process)) return;
      const { stage, attempt, credit } = process.ref;
      this.#node.handle(this.#life, () => {
        if (this.#alive.has(process))
          void sink.write('stdout', Buffer.from(`${stage}#${attempt}/${credit} line ${count}\n`));
        this.#world.moved();
      });
      this.#writeLater(process, sink, lastsMs, count + 1);
    });
  }

  /** By itself or by its helper, whatever its runner does; the runner sees it when it can. */
  #endAfter(process: Process, afterMs: number, exit: StageExit): void {
    this.#world.after(afterMs, () => {
      if (!this.#processes.end(process)) return;
      const ended = this.#alive.get(process);
      this.#alive.delete(process);
      ended?.(exit);
    });
  }
}

/** Many seeds, shared out over processes: every seed is a world of its own, so they need nothing of each other. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Marks } from '../world/marks.ts';
import type { Mutation } from '../world/mutations.ts';

export interface BatchOptions {
  readonly from: number;
  readonly seeds: number;
  readonly workers: number;
  readonly mutation?: Mutation | undefined;
  /** After so many failures no other world is begun, and those that are under way are given up. */
  readonly failuresMax: number;
}

export interface BatchFailure {
  readonly seed: number;
  readonly rule: string;
  /** The last steps, what broke, and the command that shows it again. */
  readonly report: string;
}

export interface BatchResult {
  readonly seeds: number;
  readonly steps: number;
  readonly virtualMs: number;
  readonly marks: Marks;
  readonly failures: readonly BatchFailure[];
}

/** To a worker: the next world that it lives. */
export interface WorkerTask {
  readonly seed: number;
  readonly mutation?: Mutation | undefined;
}

/** From a worker: what it has found in that world. */
export interface WorkerResult {
  readonly steps: number;
  readonly virtualMs: number;
  readonly marks: readonly (readonly [string, number])[];
  readonly failure?: BatchFailure | undefined;
}

/** A world that ends in the middle of something leaves what waits there in memory, so a process lives so many and another goes on. */
const SEEDS_OF_PROCESS_MAX = 250;

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

/** Some worlds take a hundred times as long as others: each worker is given its next one when it has lived the one before. */
export async function runBatch({ from, seeds, workers, mutation, failuresMax }: BatchOptions): Promise<BatchResult> {
  const batch = new Batch({ from, seeds, failuresMax });
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (batch.goesOn) await runWorker(batch, mutation);
    }),
  );
  return batch.result();
}

/** What is left to live, and what was found so far. */
class Batch {
  readonly #failuresMax: number;
  readonly #end: number;
  #next: number;
  readonly #marks = new Marks();
  readonly #failures: BatchFailure[] = [];
  readonly #giveUps = new Set<() => void>();
  #seeds = 0;
  #steps = 0;
  #virtualMs = 0;

  constructor({ from, seeds, failuresMax }: Pick<BatchOptions, 'from' | 'seeds' | 'failuresMax'>) {
    this.#next = from;
    this.#end = from + seeds;
    this.#failuresMax = failuresMax;
  }

  get goesOn(): boolean {
    return this.#next < this.#end && !this.hasFailed;
  }

  get hasFailed(): boolean {
    return this.#failures.length >= this.#failuresMax;
  }

  /** Undefined: there is no other one. */
  takeSeed(): number | undefined {
    return this.goesOn ? this.#next++ : undefined;
  }

  lived({ steps, virtualMs, marks, failure }: WorkerResult): void {
    this.#seeds += 1;
    this.#steps += steps;
    this.#virtualMs += virtualMs;
    this.#marks.add(marks);
    if (failure !== undefined) this.#failures.push(failure);
    if (this.hasFailed) for (const giveUp of this.#giveUps) giveUp();
  }

  /** Calls back when enough has failed, until the function that it answers is called. */
  onGivenUp(giveUp: () => void): () => void {
    this.#giveUps.add(giveUp);
    return () => void this.#giveUps.delete(giveUp);
  }

  result(): BatchResult {
    return {
      seeds: this.#seeds,
      steps: this.#steps,
      virtualMs: this.#virtualMs,
      marks: this.#marks,
      failures: this.#failures.toSorted((a, b) => a.seed - b.seed),
    };
  }
}

/** One process, until it has lived its share or there is nothing left. */
function runWorker(batch: Batch, mutation: Mutation | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = fork(WORKER, [], { execArgv: [] });
    const forget = batch.onGivenUp(() => child.kill('SIGKILL'));
    let left = SEEDS_OF_PROCESS_MAX;
    let isLiving = false;
    const goOn = (): void => {
      const seed = left-- > 0 ? batch.takeSeed() : undefined;
      isLiving = seed !== undefined;
      if (seed !== undefined) child.send({ seed, mutation } satisfies WorkerTask);
      else if (child.connected) child.disconnect();
    };
    child.on('message', (message) => {
      if (batch.hasFailed) return;
      batch.lived(message as WorkerResult);
      goOn();
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      forget();
      if (isLiving && !batch.hasFailed)
        reject(
          new Error(`a worker of the simulation ended with ${signal ?? code ?? 'nothing'} before its share was done`),
        );
      else resolve();
    });
    goOn();
  });
}

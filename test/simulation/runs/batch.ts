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
  /** Each worker stops after so many failures of its own. */
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

/** From a worker, at the end of its share. */
export interface WorkerResult extends Omit<BatchResult, 'marks'> {
  readonly marks: readonly (readonly [string, number])[];
}

/** What a worker is started with: it takes every `step`th seed. */
export interface WorkerShare extends Omit<BatchOptions, 'workers'> {
  readonly step: number;
}

/** A world that ends in the middle of something leaves what waits there in memory, so a process lives so many and another goes on. */
const SEEDS_OF_PROCESS_MAX = 250;

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

export async function runBatch({ workers, ...options }: BatchOptions): Promise<BatchResult> {
  const shares = Array.from({ length: workers }, (_, index): WorkerShare => ({
    ...options,
    from: options.from + index,
    seeds: Math.ceil((options.seeds - index) / workers),
    step: workers,
  }));
  const results = (await Promise.all(shares.map(runShare))).flat();
  const marks = new Marks();
  for (const result of results) marks.add(result.marks);
  const sum = (of: (result: WorkerResult) => number): number =>
    results.reduce((total, result) => total + of(result), 0);
  return {
    seeds: sum(({ seeds }) => seeds),
    steps: sum(({ steps }) => steps),
    virtualMs: sum(({ virtualMs }) => virtualMs),
    marks,
    failures: results.flatMap(({ failures }) => failures).sort((a, b) => a.seed - b.seed),
  };
}

async function runShare(share: WorkerShare): Promise<WorkerResult[]> {
  const results: WorkerResult[] = [];
  let failuresMax = share.failuresMax;
  for (let done = 0; done < share.seeds && failuresMax > 0; done += SEEDS_OF_PROCESS_MAX) {
    const seeds = Math.min(SEEDS_OF_PROCESS_MAX, share.seeds - done);
    const result = await runWorker({ ...share, from: share.from + done * share.step, seeds, failuresMax });
    results.push(result);
    failuresMax -= result.failures.length;
  }
  return results;
}

function runWorker(share: WorkerShare): Promise<WorkerResult> {
  return new Promise((resolve, reject) => {
    const child = fork(WORKER, [JSON.stringify(share)], { execArgv: [] });
    let result: WorkerResult | undefined;
    child.on('message', (message) => {
      result = message as WorkerResult;
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (result === undefined)
        reject(
          new Error(`a worker of the simulation ended with ${signal ?? code ?? 'nothing'} before its share was done`),
        );
      else resolve(result);
    });
  });
}

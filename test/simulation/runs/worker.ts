/** One process of a batch: lives the worlds that its parent names, one after the other, and tells it what it has found in each. */
import type { BatchFailure, WorkerResult, WorkerTask } from './batch.ts';
import { report, simulate } from './simulate.ts';

async function live({ seed, mutation }: WorkerTask): Promise<WorkerResult> {
  const { marks, steps, virtualMs, failure } = await simulate(seed, { mutation });
  return { marks: [...marks], steps, virtualMs, failure: failure && (await reported(seed, mutation, failure.rule)) };
}

/** Lived again for its last steps: the same seed is the same world. */
async function reported(seed: number, mutation: WorkerTask['mutation'], rule: string): Promise<BatchFailure> {
  return { seed, rule, report: report(await simulate(seed, { mutation, traced: true })) };
}

process.on('message', (task) => {
  void live(task as WorkerTask).then((result) => {
    // Its parent may be gone, and has said why.
    if (process.connected) process.send?.(result);
  });
});

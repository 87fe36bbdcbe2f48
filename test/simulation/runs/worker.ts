/** One process of a batch: lives its share of the seeds, and tells its parent what it found. */
import type { BatchFailure, WorkerResult, WorkerShare } from './batch.ts';
import { Marks } from '../world/marks.ts';
import { report, simulate } from './simulate.ts';

const share = JSON.parse(process.argv[2] ?? '{}') as WorkerShare;
const marks = new Marks();
const failures: BatchFailure[] = [];
let steps = 0;
let virtualMs = 0;
let seeds = 0;
for (let index = 0; index < share.seeds && failures.length < share.failuresMax; index++) {
  const seed = share.from + index * share.step;
  const outcome = await simulate(seed, { mutation: share.mutation });
  marks.add(outcome.marks);
  steps += outcome.steps;
  virtualMs += outcome.virtualMs;
  seeds += 1;
  if (outcome.failure === undefined) continue;
  // Lived again for its last steps: the same seed is the same world.
  const again = await simulate(seed, { mutation: share.mutation, traced: true });
  failures.push({ seed, rule: outcome.failure.rule, report: report(again) });
}
const result: WorkerResult = { seeds, steps, virtualMs, marks: [...marks.counts], failures };
// Its parent may be gone, and has said why.
if (process.connected) process.send?.(result, () => process.connected && process.disconnect?.());

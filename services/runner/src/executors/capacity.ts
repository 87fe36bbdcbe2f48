/** What this machine has for one stage, which may ask for more than that of its `resources`. */
import { availableParallelism, totalmem } from 'node:os';
import type { RunnerLease } from '@penstock/bus';
import type { ExecutorKind } from '@penstock/executor';

/** Undefined where stages can run on other machines too. */
export function capacityOf(executors: readonly { readonly kind: ExecutorKind }[]): RunnerLease['capacity'] {
  if (executors.some(({ kind }) => kind === 'kubernetes')) return undefined;
  // 0: no limit of a control group is known.
  const limit = process.constrainedMemory();
  return { cpu: availableParallelism(), memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem() };
}

/** What this machine has for one stage, which may ask for more than that of its `resources`. */
import { availableParallelism } from 'node:os';
import type { RunnerLease } from '@penstock/bus';
import type { ExecutorKind } from '@penstock/executor';
import { machineMemory } from '@penstock/service';

/** Undefined where stages can run on other machines too. */
export function capacityOf(executors: readonly { readonly kind: ExecutorKind }[]): RunnerLease['capacity'] {
  if (executors.some(({ kind }) => kind === 'kubernetes')) return undefined;
  return { cpu: availableParallelism(), memoryBytes: machineMemory() };
}

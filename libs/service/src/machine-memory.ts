import { totalmem } from 'node:os';

/** Bytes that this machine has for us: its own, or what the control group may have of it. */
export function machineMemory(): number {
  // 0: no limit of a control group is known.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

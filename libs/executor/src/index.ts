export type * from './port.ts';
export * from './errors.ts';
export { ProcessExecutor, type ProcessExecutorOptions } from './process/executor.ts';
export { type CoveredFolder, type Isolation } from './process/launch.ts';
export { killLeftovers } from './process/leftovers.ts';
export { bootClockMs, identityOf, isAlive, type ProcessIdentity } from './process/proc.ts';
export { Guard } from './guard.ts';

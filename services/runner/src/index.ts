export { stageLimitsOf } from './executors/stage-limits.ts';
export { hostsOf } from './executors/denied-hosts.ts';
export { kubernetesSettings, type KubernetesSettings } from './executors/kubernetes-source.ts';
export { findExecutors, leastIsolation } from './executors/find-executors.ts';
export type { Runner, RunnerOptions } from './runner-options.ts';
export { defaultSlots } from './executors/default-slots.ts';
export { startRunner } from './start.ts';
export { runRunnerService } from './service.ts';
export { runFleetRunner } from './fleet-runner.ts';

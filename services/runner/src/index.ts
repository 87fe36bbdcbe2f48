export { startRunner, type Runner, type RunnerOptions } from './runner.ts';
export { runRunnerService } from './service.ts';

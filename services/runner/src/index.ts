export { startRunner, type Runner, type RunnerOptions } from './runner.ts';

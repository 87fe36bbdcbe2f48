export { startRunner, type Runner } from './runner.ts';
export { runRunnerService } from './service.ts';

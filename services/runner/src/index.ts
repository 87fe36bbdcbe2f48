export type { Runner } from './runner-options.ts';
export { startRunner } from './start.ts';
export { runRunnerService } from './service.ts';

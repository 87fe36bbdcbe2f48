export * from './logger.ts';
export * from './metrics.ts';
export { createRedact, type Redact } from './redact.ts';

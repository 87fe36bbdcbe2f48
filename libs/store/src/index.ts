export type * from './port.ts';
export * from './errors.ts';
export * from './health.ts';
export * from './runs-repository.ts';

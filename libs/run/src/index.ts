export type * from './events.ts';
export type * from './state.ts';
export * from './run-id.ts';
export * from './plan.ts';
export * from './evolve.ts';
export * from './errors.ts';

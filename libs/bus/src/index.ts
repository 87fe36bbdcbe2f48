export type * from './messages.ts';
export * from './subjects.ts';
export * from './chunk.ts';

export * from './broker.ts';
export * from './proxy.ts';

export * from './broker.ts';
export * from './browser.ts';
export * from './proxy.ts';
export * from './cluster.ts';
export * from './fake-git-host.ts';
export * from './small-disk.ts';
export * from './stream-limits.ts';

export type * from './port.ts';
export * from './errors.ts';
export { openFolderStore } from './folder/folder-store.ts';
export { openNatsStore, type NatsStoreOptions } from './nats/nats-store.ts';
export { openObjectStore } from './open-object-store.ts';

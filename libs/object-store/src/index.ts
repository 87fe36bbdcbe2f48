export { HashMismatch, ObjectDamaged, ObjectsFull, ObjectsUnavailable, ObjectTooLarge } from './errors.ts';
export { openFolderStore } from './folder/folder-store.ts';
export { openObjectStore } from './open-object-store.ts';
export type { ObjectHead, ObjectStore, StoredObject } from './port.ts';

/** The storage that `SERVICE_OBJECTS_URL` names. */
import type { Bus } from '@penstock/bus';
import { openFolderStore } from './folder/folder-store.ts';
import { openNatsStore } from './nats/nats-store.ts';
import type { ObjectStore } from './port.ts';

/** `nats`: the JetStream bucket of this name; anything else is a folder's path. Rejects with ObjectsUnavailable. */
export async function openObjectStore(
  address: string,
  dependencies: { readonly bus: Bus; readonly bucket: string; readonly replicas?: number | undefined },
): Promise<ObjectStore> {
  return address === 'nats' ? await openNatsStore(dependencies) : await openFolderStore(address);
}

/** The storage that `SERVICE_OBJECTS_URL` names. */
import type { Bus } from '@penstock/bus';
import { parseObjectAddress } from '@penstock/config';
import { ObjectUsageError } from './errors.ts';
import { openFolderStore } from './folder/folder-store.ts';
import { openNatsStore } from './nats/nats-store.ts';
import type { ObjectStore } from './port.ts';

/** `bucket`: of JetStream. Rejects with ObjectsUnavailable; ObjectUsageError for an address that is none. */
export async function openObjectStore(
  address: string,
  dependencies: { readonly bus: Bus; readonly bucket: string; readonly replicas?: number | undefined },
): Promise<ObjectStore> {
  const parsed = parseObjectAddress(address);
  if ('problem' in parsed) throw new ObjectUsageError(`the address of the object storage ${parsed.problem}`);
  switch (parsed.kind) {
    case 'nats':
      return await openNatsStore(dependencies);
    case 'folder':
      return await openFolderStore(parsed.folder);
    case 's3': {
      // Its client is large, and few need it.
      const { openS3Store } = await import('./s3/s3-store.ts');
      return await openS3Store(parsed);
    }
  }
}

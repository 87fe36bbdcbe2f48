/** What a backup of this server copies, from its settings. */
import { existsSync, readFileSync } from 'node:fs';
import { parseObjectAddress } from '@penstock/config';
import type { StoreAddress } from '@penstock/store';
import packageJson from '../../package.json' with { type: 'json' };
import { masterKeyFile } from '../keys.ts';
import type { BackupSettings } from './make-backup.ts';

export interface BackedUpServer {
  readonly dataDir: string;
  readonly store: StoreAddress;
  readonly objectsUrl: string;
  readonly partitions: number;
  readonly masterKeys?: readonly string[] | undefined;
}

export const { version: RELEASE } = packageJson;

/** Undefined: the database is a server of its own, which has its own means. */
export function backupSettings(server: BackedUpServer): BackupSettings | undefined {
  const { dataDir, store, objectsUrl, partitions } = server;
  if (store.kind !== 'sqlite') return undefined;
  const objects = parseObjectAddress(objectsUrl);
  const notes = [
    ...('problem' in objects || objects.kind !== 's3'
      ? []
      : [
          'Packages, kept files, caches and logs of ended runs are in the bucket of SERVICE_OBJECTS_URL: it is to be kept by its own means.',
        ]),
    ...(isKeptByOperator(server)
      ? ['SERVICE_MASTER_KEY is not in it: without that variable no secret can be read again.']
      : []),
  ];
  return {
    dataDir,
    storePath: store.path,
    objectsDir: 'problem' in objects || objects.kind !== 'folder' ? undefined : objects.folder,
    partitions,
    version: RELEASE,
    notes,
  };
}

/** A key that `serve` has made for itself is in the data folder, and so in the backup. */
function isKeptByOperator({ dataDir, masterKeys = [] }: BackedUpServer): boolean {
  const file = masterKeyFile(dataDir);
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  return masterKeys.some((key) => key !== kept);
}

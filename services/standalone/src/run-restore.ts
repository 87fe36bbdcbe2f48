/** What `penstock admin restore` does: settings from the environment, and the data folder made from the backup. */
import { defaultDataFolder, readConfiguration } from '@penstock/config';
import { createLogger } from '@penstock/telemetry';
import { RELEASE } from './backup/backup-settings.ts';
import type { Manifest } from './backup/manifest.ts';
import { restoreBackup } from './backup/restore-backup.ts';

export interface RestoreRequest {
  readonly folder: string;
  /** Default: where `penstock serve` keeps everything. */
  readonly dataDir: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws an Error that says, for a person, why nothing was restored. */
export async function runRestore({
  folder,
  dataDir,
  env,
}: RestoreRequest): Promise<{ readonly manifest: Manifest; readonly dataDir: string }> {
  const settings = readConfiguration(['dataDir', 'natsServer'], {
    env,
    flags: { dataDir: dataDir === undefined ? undefined : { name: '--data-dir', value: dataDir } },
  });
  const target = settings.dataDir ?? defaultDataFolder(env);
  const manifest = await restoreBackup({
    folder,
    dataDir: target,
    binary: settings.natsServer ?? 'nats-server',
    version: RELEASE,
    log: createLogger({ service: 'restore', level: 'warn', secrets: [] }),
  });
  return { manifest, dataDir: target };
}

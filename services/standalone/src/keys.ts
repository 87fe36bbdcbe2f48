/** Secrets that a server in development mode makes for itself, kept in the data folder so that restarts do not change them. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDataFolder } from './data-folder.ts';

/** Where `serve` keeps the API key that it made; the command line reads it there. */
export function apiKeyFile(dataDir: string): string {
  return join(dataDir, 'api-key');
}

/** Where `serve` keeps what it signs access tokens with: logins outlive a restart. */
export function jwtSecretFile(dataDir: string): string {
  return join(dataDir, 'jwt-secret');
}

/** What the secrets of stages are kept under: whoever loses it has to set them anew. */
export function masterKeyFile(dataDir: string): string {
  return join(dataDir, 'master-key');
}

/** The secret in the file; made, with mode 0600, where there is none. */
export function keptSecret(file: string): string {
  try {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept !== '') return kept;
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  makeDataFolder(dirname(file));
  const made = randomBytes(32).toString('base64url');
  // On the disk before anything is kept under it: after a power cut an empty file would be a new secret.
  writeFileSync(file, `${made}\n`, { mode: 0o600, flush: true });
  return made;
}

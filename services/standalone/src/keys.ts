/** Secrets that a server in development mode makes for itself, kept in the data folder so that restarts do not change them. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Where `serve` keeps the API key that it made; the command line reads it there. */
export function apiKeyFile(dataDir: string): string {
  return join(dataDir, 'api-key');
}

/** The key in the file; made, with mode 0600, where there is none. */
export function keptSecret(file: string): string {
  try {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept !== '') return kept;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const made = randomBytes(32).toString('base64url');
  writeFileSync(file, `${made}\n`, { mode: 0o600 });
  return made;
}

/** Where a server on this machine keeps its data, and where every command looks for the key that it made. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * `$XDG_DATA_HOME/penstock`, else `~/.local/share/penstock`: never inside a checkout, where a stage would find the
 * checkout's dependencies above its workspace. A relative XDG_DATA_HOME is ignored, as its specification asks.
 */
export function defaultDataFolder(env: Readonly<Record<string, string | undefined>>): string {
  const data = env['XDG_DATA_HOME'];
  if (data !== undefined && isAbsolute(data)) return join(data, 'penstock');
  return join(env['HOME'] || homedir(), '.local', 'share', 'penstock');
}

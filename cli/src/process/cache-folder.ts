/** Where this command keeps what it could make again: `$XDG_CACHE_HOME/penstock/<name>`, or the same in `~/.cache`. */
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';

export function cacheFolder(env: Readonly<Record<string, string | undefined>>, name: string): string {
  return join(cacheRoot(env), 'penstock', name);
}

function cacheRoot(env: Readonly<Record<string, string | undefined>>): string {
  const xdg = env['XDG_CACHE_HOME'];
  if (xdg !== undefined && isAbsolute(xdg)) return xdg;
  const home = env['HOME'] || homedir();
  return isAbsolute(home) ? join(home, '.cache') : tmpdir();
}

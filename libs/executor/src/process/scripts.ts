/**
 * The shell programs of helpers, as text: they are handed over as arguments, for where they run their files may lie under a
 * cover, or belong to a user whose folders they cannot enter.
 */
import { existsSync, readFileSync } from 'node:fs';

/** dash forks and reads twice as fast as bash; where `sh` is something else, that serves too. */
export const HELPER_SHELL = ['/bin/dash', '/usr/bin/dash'].find((path) => existsSync(path)) ?? '/bin/sh';

export const HELPER_TEXT = textOf('./helper.sh');
export const LAUNCH_TEXT = textOf('./launch.sh');

function textOf(name: string): string {
  const text = readFileSync(new URL(name, import.meta.url), 'utf8');
  // Comments are for readers of the file.
  return text.replaceAll(/^\s*#.*\n/gm, '');
}

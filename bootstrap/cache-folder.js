/**
 * Where things are kept between starts: `$XDG_CACHE_HOME/penstock` or `~/.cache/penstock` (outside the checkout, so that a fresh
 * clone has them too), and `.cache/` in the checkout where the home folder cannot be written.
 */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Every folder that may hold something cached, the preferred one first. */
export function cacheFolders(root, env) {
  const folders = [];
  // The XDG rules: a relative path is to be ignored.
  if (env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME)) folders.push(join(env.XDG_CACHE_HOME, 'penstock'));
  else {
    const home = env.HOME || env.USERPROFILE || homeFromSystem();
    if (home && isAbsolute(home)) folders.push(join(home, '.cache', 'penstock'));
  }
  return [...folders, join(root, '.cache')];
}

/** The first of `folders` that can be written (created if need be), or undefined. */
export function firstWritable(folders) {
  return folders.find((folder) => {
    try {
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function homeFromSystem() {
  try {
    return homedir();
  } catch {
    return '';
  }
}

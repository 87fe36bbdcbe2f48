/**
 * Where things are kept between starts: `$XDG_CACHE_HOME/penstock` or `~/.cache/penstock` (outside the checkout, so that a fresh
 * clone has them too), and `.cache/` in the checkout where the home folder cannot be written.
 */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

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
      makeFolder(folder);
      accessSync(folder, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Node's own `recursive` never ends where a file system makes no folders although they are missing (/proc). */
function makeFolder(folder) {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another start may have been faster.
    if (error.code !== 'EEXIST' || !statSync(folder).isDirectory()) throw error;
  }
}

function homeFromSystem() {
  try {
    return homedir();
  } catch {
    return '';
  }
}

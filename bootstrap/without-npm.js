/**
 * The environment without what npm adds to it for the length of one script: stages inherit the server's PATH, and must
 * not find the server's own dependencies on it.
 */
import { delimiter, dirname, join } from 'node:path';

const ADDED_BY_NPM = /^(npm_|INIT_CWD$|NODE$|COLOR$)/;

/** @returns a copy of `env`; unchanged where no npm script is running. `root` is the checkout. */
export function withoutNpm(env, root) {
  if (env.npm_lifecycle_event === undefined) return { ...env };
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !ADDED_BY_NPM.test(name)));
  const pathName = Object.keys(kept).find((name) => name.toUpperCase() === 'PATH') ?? 'PATH';
  const added = new Set(ancestors(root).map((folder) => join(folder, 'node_modules', '.bin')));
  kept[pathName] = (kept[pathName] ?? '')
    .split(delimiter)
    .filter((entry) => !added.has(entry) && !entry.endsWith('node-gyp-bin'))
    .join(delimiter);
  return kept;
}

function ancestors(folder) {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...ancestors(above)];
}
